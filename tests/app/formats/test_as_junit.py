"""Findings as JUnit XML, read back by a library."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from junitparser import JUnitXml, TestCase

from stepscope.app.formats import Asked, Checked, as_junit
from tests.app.formats.findings import ASKED, CONFLICT, HOSTILE, NOTE, WASTE, checked, many


def cases_of(*given: Checked, fail_on: str = "error") -> dict[str, TestCase]:
    text = as_junit.render(given, Asked(fail_on=fail_on)).text
    report = JUnitXml.fromstring(text.encode())
    return {f"{case.name}": case for suite in report for case in suite}


def test_a_suite_for_each_trace_and_a_case_for_each_rule() -> None:
    text = as_junit.render([checked(CONFLICT), checked(trace="b.trace")], ASKED).text

    report = JUnitXml.fromstring(text.encode())
    assert [suite.name for suite in report] == ["mix.trace", "b.trace"]
    assert [(suite.tests, suite.failures, suite.skipped) for suite in report] == [
        (4, 1, 1), (4, 0, 1),
    ]  # fmt: skip
    assert (report.tests, report.failures, report.skipped) == (8, 1, 2)


def test_a_rule_that_found_something_fails_with_every_finding_and_the_fix() -> None:
    other = replace(CONFLICT, message="push 1/2 too", ts_ns=9_214_000)

    case = cases_of(checked(CONFLICT, other))["COR001 mix-on-occupied-group"]

    (failure,) = case.result
    assert case.is_failure
    assert (failure.message, failure.type) == (CONFLICT.message, "error")
    assert (failure.text or "").splitlines() == [
        "group 2 · core 6 · step 3 · 8.000 ms: qk_pv 7/8 took the AIC of group 2",
        "group 2 · core 6 · step 3 · 9.000 ms: push 1/2 too",
        "fix: admit a MIX only when the whole group is free",
    ]


def test_a_rule_that_is_not_applicable_is_skipped_and_never_passed() -> None:
    case = cases_of(checked())["STV001 request-starved"]

    assert case.is_skipped
    assert not case.is_passed


def test_a_rule_that_found_nothing_passes() -> None:
    assert cases_of(checked())["COR001 mix-on-occupied-group"].is_passed


def test_what_does_not_fail_the_check_fails_no_case_and_is_still_said() -> None:
    case = cases_of(checked(WASTE))["KVB003 preempted-with-room"]

    assert case.is_passed
    assert WASTE.message in (case.system_out or "")


def test_warnings_fail_where_they_fail_the_check() -> None:
    cases = cases_of(checked(WASTE, NOTE), fail_on="warning")

    assert cases["KVB003 preempted-with-room"].is_failure
    assert cases["TRC003 inferred"].is_passed


def test_errors_are_shown_as_failures_though_nothing_is_to_fail() -> None:
    cases = cases_of(checked(CONFLICT, WASTE), fail_on="never")

    assert cases["COR001 mix-on-occupied-group"].is_failure
    assert cases["KVB003 preempted-with-room"].is_passed


def test_many_findings_of_a_rule_are_cut_and_counted() -> None:
    conflicts = [each for each in many(900) if each.code == "COR001"]

    (failure,) = cases_of(checked(*conflicts))["COR001 mix-on-occupied-group"].result

    assert len((failure.text or "").splitlines()) == as_junit.MOST_LISTED + 2
    assert "and 200 more" in (failure.text or "")


def test_hostile_text_stays_text() -> None:
    found = replace(CONFLICT, message=HOSTILE, request=HOSTILE, fix=HOSTILE)

    (failure,) = cases_of(checked(found, trace=HOSTILE))["COR001 mix-on-occupied-group"].result

    assert "]]> [x](https://e.example)" in (failure.message or "")
    assert len((failure.text or "").splitlines()) == 2


@given(st.text(), st.text())
def test_any_text_gives_a_document_that_is_read_back(message: str, trace: str) -> None:
    cases = cases_of(checked(replace(CONFLICT, message=message), trace=trace))

    assert cases["COR001 mix-on-occupied-group"].is_failure
