"""Running rules over a trace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from stepscope.analyzers.check import run
from stepscope.analyzers.check.registry import RULES
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.ingest.errors import ConfigError, StepscopeError
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event, life, part
from tests.looped import looped
from tests.traces import trace_of


@dataclass(frozen=True, slots=True)
class Fixed:
    """Finds what it was given."""

    found: tuple[tuple[int | None, int], ...] = ()
    error: Exception | None = None

    code: ClassVar[str] = "XYZ001"
    name: ClassVar[str] = "fixed"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ()

    def check(self, trace: Trace) -> list[Finding]:
        if self.error:
            raise self.error
        return [
            finding(self, trace.name, "mend it", at={"ts_ns": ts_ns}, count=count)
            for ts_ns, count in self.found
        ]


@dataclass(frozen=True, slots=True)
class Worse(Fixed):
    """Finds worse."""

    code: ClassVar[str] = "XYZ002"
    severity: ClassVar[Severity] = Severity.ERROR


def test_findings_are_ranked_by_severity_then_time_and_those_without_a_time_come_last() -> None:
    rules = [Fixed(((9, 1), (None, 1), (3, 1))), Worse(((7, 1), (5, 1)))]

    result = check(trace_of(), rules)

    assert [(each.code, each.ts_ns) for each in result.findings] == [
        ("XYZ002", 5), ("XYZ002", 7), ("XYZ001", 3), ("XYZ001", 9), ("XYZ001", None),
    ]  # fmt: skip


def test_counts_add_up_occurrences_and_are_zero_where_a_rule_found_nothing() -> None:
    result = check(trace_of(), [Fixed(((1, 20), (2, 3))), Worse()])

    assert result.counts == {"XYZ001": 23, "XYZ002": 0}


def test_a_rule_whose_tables_are_missing_is_not_applicable_and_has_no_count() -> None:
    result = check(trace_of(lifecycle=life("1", 0, 1, 2), core_spans=[]))

    assert "COR001" in result.not_applicable
    assert "COR001" not in result.counts
    assert result.counts["STV002"] == 0


@dataclass(frozen=True, slots=True)
class Closed(Fixed):
    """Judges what was closed."""

    code: ClassVar[str] = "XYZ003"

    def applies(self, trace: Trace) -> bool:
        if self.error:
            raise self.error
        return trace.manifest.closed


def test_a_rule_that_says_that_it_cannot_judge_is_not_applicable_and_never_clean() -> None:
    rules = [Fixed(), Closed(((1, 1),))]

    torn, whole = (check(trace_of(closed=closed), rules) for closed in (False, True))

    assert (torn.not_applicable, torn.counts, torn.findings) == (("XYZ003",), {"XYZ001": 0}, ())
    assert (whole.not_applicable, whole.counts) == ((), {"XYZ001": 0, "XYZ003": 1})


def test_a_rule_is_asked_only_about_traces_that_have_its_tables() -> None:
    class Tabled(Closed):
        needs: ClassVar[tuple[str, ...]] = ("steps",)

    assert check(trace_of(), [Tabled(error=ValueError("no steps"))]).not_applicable == ("XYZ003",)


def test_a_rule_that_fails_when_it_is_asked_is_one_line_too() -> None:
    with pytest.raises(StepscopeError, match="rule XYZ003 failed: KeyError: 'layout'"):
        check(trace_of(), [Closed(error=KeyError("layout"))])


def test_progress_is_told_which_rule_runs() -> None:
    told: list[tuple[str, int, int | None]] = []

    check(trace_of(), [Fixed(), Worse()], progress=lambda *what: told.append(what))

    assert told == [("XYZ001", 0, 2), ("XYZ002", 1, 2)]


def test_a_rule_that_fails_is_one_line_that_says_which_and_what_to_do() -> None:
    with pytest.raises(StepscopeError) as caught:
        check(trace_of(name="run.trace"), [Fixed(error=ValueError("one\ntwo"))])

    assert str(caught.value) == (
        "run.trace: rule XYZ001 failed: ValueError: one; "
        "skip it with --ignore XYZ001, and report this as a bug"
    )


def test_an_error_that_the_user_can_act_on_passes_through() -> None:
    with pytest.raises(ConfigError, match="no such thing"):
        check(trace_of(), [Fixed(error=ConfigError("no such thing"))])


def test_a_result_is_json_with_every_key_of_the_command_line() -> None:
    trace = trace_of(
        lifecycle=[event("1", "arrive", 0), *life("2", 1, 2, 3)],
        core_spans=[part(1, 1, 0, 9), part(2, 1, 5, 8)],
    )

    printed = json.loads(json.dumps(check(trace).as_dict()))

    assert printed.keys() == {
        "trace", "unjudged", "coverage", "findings", "not_applicable", "counts",
    }  # fmt: skip
    assert printed["findings"][0].keys() == {
        "code", "name", "severity", "rank", "step", "ts_ns", "end_ns", "request", "task", "core",
        "group", "message", "evidence", "fix", "count",
    }  # fmt: skip
    assert printed["findings"][0]["severity"] == "error"


def test_text_of_a_trace_is_kept_as_it_is() -> None:
    name = "<b>\x1b[31m]qk</b> {0} %s"
    spans = [part(1, 1, 0, 9_000), part(2, 1, 5_000, 8_000)]
    named = [{"task": 2, "name": name, "shape": "AIV", "num_blocks": 1}]

    result = check(trace_of(core_spans=spans, tasks=named))

    assert result.findings[0].message.startswith(name)


def test_every_rule_of_the_registry_runs_by_default() -> None:
    result = check(trace_of())

    assert {*result.counts, *result.not_applicable} == {rule.code for rule in RULES}


@looped("sample", ["fcfs-preemption-before", "mix-admission-before"])
def test_a_large_trace_is_judged_as_a_small_one_whose_rows_are_read_first(
    sample: str, sample_traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace.open(sample_traces / f"{sample}.trace")
    held = check(trace)
    monkeypatch.setattr(run, "MOST_IN_MEMORY", 0)
    assert check(trace).as_dict() == held.as_dict()
    assert held.findings
