"""Baselines: what is known passes, what is new does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.check.baseline import (
    baseline_of,
    load_baseline,
    new_findings,
    save_baseline,
)
from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.ingest.errors import ConfigError
from tests.looped import looped

STARVED = Finding("STV001", "request-starved", Severity.ERROR, "m", "f", request="req-1", ts_ns=5)
MORE = replace(STARVED, request=None, count=10, message="10 more, not listed one by one")


def result_of(*findings: Finding, trace: str = "runs/a.trace") -> CheckResult:
    counts = {"STV001": sum(finding.count for finding in findings), "COR001": 0}
    return CheckResult(trace, findings, {"KVB003": ("decisions.needed",)}, counts, ("steps",))


def new(found: CheckResult, *known: CheckResult) -> tuple[Finding, ...]:
    (result,) = new_findings([found], baseline_of(known))
    return result.findings


def test_what_is_known_is_not_new_however_its_time_shifts() -> None:
    shifted = replace(STARVED, ts_ns=99, step=4, rank=1, count=7)

    assert new(result_of(shifted), result_of(STARVED)) == ()


def test_another_subject_is_new() -> None:
    other = replace(STARVED, request="req-2")

    assert new(result_of(STARVED, other), result_of(STARVED)) == (other,)


def test_one_more_of_the_same_is_new() -> None:
    again = replace(STARVED, ts_ns=6)

    assert new(result_of(STARVED, again), result_of(STARVED)) == (again,)


def test_what_names_no_subject_is_known_up_to_its_number() -> None:
    fewer, more = replace(MORE, count=9), replace(MORE, count=11)

    assert new(result_of(fewer), result_of(MORE)) == ()
    assert new(result_of(more), result_of(MORE)) == (more,)


def test_counts_are_those_of_what_is_new() -> None:
    other = replace(STARVED, request="req-2", count=3)

    (result,) = new_findings([result_of(STARVED, other)], baseline_of([result_of(STARVED)]))

    assert result.counts == {"STV001": 3, "COR001": 0}
    assert result.not_applicable == ("KVB003",)


def test_traces_are_told_apart_by_name_wherever_they_lie() -> None:
    known = [result_of(STARVED), result_of(trace="runs/b.trace")]
    found = [result_of(STARVED, trace="/ci/7/a.trace"), result_of(STARVED, trace="/ci/7/b.trace")]

    first, second = new_findings(found, baseline_of(known))

    assert first.findings == ()
    assert second.findings == (STARVED,)


def test_a_baseline_of_one_trace_serves_any_one_trace() -> None:
    assert new(result_of(STARVED, trace="build-42.trace"), result_of(STARVED)) == ()


@given(st.lists(st.sampled_from([STARVED, MORE, replace(STARVED, request="x")]), max_size=9))
def test_nothing_is_new_to_the_baseline_of_itself(findings: list[Finding]) -> None:
    assert new(result_of(*findings), result_of(*findings)) == ()


def test_a_baseline_is_read_back_and_can_be_reviewed_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "known.json"
    baseline = baseline_of([result_of(STARVED, MORE, trace="bad\udcff.trace")])

    save_baseline(baseline, file)

    assert load_baseline(file) == baseline
    assert '"subject": "request req-1"' in file.read_text()


@looped(
    ("text", "message"),
    [
        ("", "not a baseline"),
        ("[]", "not a baseline: Expected `object`"),
        ('{"stepscope_baseline": 1}', "missing required field `traces`"),
        ('{"stepscope_baseline": 1, "traces": {"a": [{"code": 1}]}}', "not a baseline"),
        ('{"stepscope_baseline": 2, "traces": {}}', "of version 2, not 1"),
        ("[" * 100_000, "not a baseline"),
    ],
)
def test_what_is_no_baseline_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "known.json"
    file.write_text(text)

    with pytest.raises(ConfigError, match=message):
        load_baseline(file)


def test_a_baseline_that_is_not_there_says_how_it_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--update-baseline"):
        load_baseline(tmp_path / "known.json")
