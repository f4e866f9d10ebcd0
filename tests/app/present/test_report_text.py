"""Findings as text, for people and for logs."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.present.report_text import format_result, format_summary, tally
from stepscope.app.present.where import where

CONFLICT = Finding(
    code="COR001",
    name="mix-on-occupied-group",
    severity=Severity.ERROR,
    message="qk_pv 7/8 took the AIC",
    fix="admit a MIX only when the whole group is free",
    step=3,
    ts_ns=8_214_000,
    group=2,
)


def result_of(*findings: Finding) -> CheckResult:
    return CheckResult(
        "mix.trace", findings, {"STV001": ("lifecycle.request",)}, {"COR001": 0}, ("core_spans",)
    )


def test_a_finding_says_where_what_and_how_to_fix_it() -> None:
    text = format_result(result_of(CONFLICT), start_ns=214_000)

    assert "✖ COR001 mix-on-occupied-group" in text
    assert "group 2 · step 3 · 8.000 ms" in text
    assert "qk_pv 7/8 took the AIC" in text
    assert "fix: admit a MIX only" in text


def test_a_rule_that_could_not_be_applied_is_named_and_never_called_clean() -> None:
    assert "not applicable (not recorded): STV001" in format_result(result_of())


def test_many_findings_of_a_rule_are_cut_and_counted() -> None:
    many = [replace(CONFLICT, group=group) for group in range(20)]

    text = format_result(result_of(*many))

    assert "×20" in text
    assert "and 17 more" in text
    assert "group 19" not in text


def test_a_rule_has_one_paragraph_wherever_its_findings_rank() -> None:
    starved = replace(CONFLICT, code="STV001", name="request-starved")

    text = format_result(result_of(CONFLICT, starved, CONFLICT))

    assert text.count("✖ COR001") == text.count("✖ STV001") == 1


def test_all_shows_every_finding() -> None:
    many = [replace(CONFLICT, group=group) for group in range(20)]

    assert "group 19" in format_result(result_of(*many), show_all=True)


def test_a_clean_trace_says_that_nothing_was_found() -> None:
    assert format_result(result_of()).startswith("mix.trace: nothing found")


def test_a_tally_counts_occurrences_by_severity() -> None:
    found = [replace(CONFLICT, count=22), CONFLICT, replace(CONFLICT, severity=Severity.INFO)]

    assert tally(found) == "✖ 23 errors  ● 1 note"


def test_a_finding_without_a_place_is_about_the_whole_run() -> None:
    assert where(replace(CONFLICT, step=None, ts_ns=None, group=None)) == "whole run"


def test_a_summary_adds_the_traces_up() -> None:
    assert format_summary([result_of(CONFLICT), result_of(CONFLICT)]) == "2 traces: ✖ 2 errors"


def test_hostile_names_cannot_steer_the_terminal() -> None:
    text = format_result(result_of(replace(CONFLICT, message="\x1b[2Jgone\r")))

    assert "\x1b" not in text
    assert "\r" not in text
