"""How much of a check could judge, and what would have to be recorded for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stepscope.analyzers.check.coverage import BLIND, OF_THE_RECORDING, UNREAD, Coverage, coverage
from stepscope.analyzers.check.registry import RULES, by_code, select
from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import CONDITION, Particular, Rule, lacking
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event, life, part
from tests.looped import looped
from tests.traces import trace_of

PLAIN = [{"span": 1, "track": "main", "name": "work", "dur_ns": 5}]


def of(*needs: tuple[str, ...], tables: tuple[str, ...] = ()) -> Coverage:
    """The coverage of rules that lack these, where one other rule judged."""
    absent = {f"XYZ{number:03}": each for number, each in enumerate(needs)}
    return Coverage(("COR001",), absent, tables or ("counters",))


def test_a_trace_without_a_row_was_not_read() -> None:
    result = check(trace_of(steps=[]))

    assert result.coverage.is_unread
    assert result.coverage.verdict == UNREAD


def test_rules_of_the_recording_say_nothing_of_what_ran() -> None:
    result = check(trace_of(spans=PLAIN))

    assert set(result.counts) <= OF_THE_RECORDING
    assert result.coverage.verdict == BLIND
    assert "rules could judge (its recording alone)" in result.coverage.share


def test_who_asks_for_rules_of_the_recording_is_answered_by_them() -> None:
    assert check(trace_of(spans=PLAIN), select(["TRC001", "TRC003"])).coverage.verdict is None


def test_one_rule_that_could_judge_what_ran_is_enough() -> None:
    coverage = check(trace_of(core_spans=[part(1, 1, 0, 9)])).coverage

    assert not coverage.is_blind
    assert "COR002" in coverage.judged


def test_selected_rules_of_which_none_applies_could_not_judge() -> None:
    trace = trace_of(lifecycle=life("1", 0, 1, 2))

    num = len(select(["COR"]))
    assert check(trace, select(["COR"])).coverage.share.startswith(f"0 of {num} rules could judge")
    assert check(trace, select(["COR"])).coverage.is_blind
    assert not check(trace).coverage.is_blind


def test_a_rule_says_which_tables_and_columns_it_lacks() -> None:
    trace = trace_of(steps=[{"step": 1, "kind": "decode"}])

    assert lacking(by_code("STV006"), trace) == ("lifecycle.request", "steps.dur_ns", "batch_rows")


def test_a_rule_that_has_its_tables_says_where_alone_it_applies() -> None:
    arrived = trace_of(lifecycle=[event("1", "arrive", 0)])

    assert lacking(by_code("STV001"), arrived) == (
        "only where it is known when requests arrived, and what became of any",
    )


@looped(
    "rule", [rule for rule in RULES if isinstance(rule, Particular)], ids=lambda rule: rule.code
)
def test_every_rule_can_say_why_it_does_not_apply(rule: Rule) -> None:
    said = type(rule).applies.__doc__  # type: ignore[attr-defined]  # `Particular` has it

    assert said.startswith(CONDITION)


def test_what_is_asked_and_what_is_checked_agree() -> None:
    trace = trace_of(lifecycle=life("1", 0, 1, 2), core_spans=[part(1, 1, 0, 9)])

    assert coverage(trace) == check(trace).coverage
    assert {*coverage(trace).judged, *coverage(trace).lacking} == {rule.code for rule in RULES}


def test_what_serves_most_rules_is_to_be_recorded_first() -> None:
    said = of(("steps.kind",), ("steps",), ("outputs",), ("steps", "outputs"))

    assert said.share == (
        "1 of 5 rules could judge; record steps for up to 2 more, then outputs (2)"
    )


def test_tables_that_serve_a_rule_only_together_are_named_together() -> None:
    assert "record batch_rows + outputs for up to 1 more" in of(("outputs", "batch_rows")).share


def test_a_table_that_is_there_lacks_columns() -> None:
    assert "record more of steps for up to 1 more" in of(("steps.kind",), tables=("steps",)).share


def test_core_groups_come_last_because_few_have_them() -> None:
    said = of(("core_spans",), ("core_spans",), ("outputs",)).share

    assert "record outputs for up to 1 more, then core_spans (2)" in said


def test_where_only_conditions_are_not_met_nothing_is_said_of_recording() -> None:
    assert of(("only where there are several ranks",)).share == "1 of 2 rules could judge"


def test_what_the_line_promises_is_what_the_rules_need() -> None:
    trace = trace_of(spans=PLAIN)
    steps = {
        rule.code
        for rule in RULES
        if {n.partition(".")[0] for n in rule.needs if n != CLOCK} == {"steps"}
    }

    assert f"record steps for up to {len(steps)} more" in coverage(trace).share


def test_in_place_of_findings_stands_whether_anything_could_be_found() -> None:
    blind = Coverage(("TRC001",), {"COR001": ("core_spans",)}, ("spans",))

    assert blind.without_findings.startswith("No rule could judge what ran: 1 of 2 rules")
    assert of().without_findings == "Nothing was found: 1 of 1 rule could judge."


@dataclass(frozen=True, slots=True)
class Silent:
    """A rule that has nothing to say of itself."""

    code: ClassVar[str] = "XYZ009"
    name: ClassVar[str] = "silent"
    severity: ClassVar[Severity] = Severity.INFO
    needs: ClassVar[tuple[str, ...]] = ()

    def check(self, trace: Trace) -> list[Finding]:
        return []

    def applies(self, trace: Trace) -> bool:
        """Tell whether it was closed:
        a line, and
        another.
        """
        return trace.manifest.closed


def test_a_condition_is_one_line_however_it_is_written() -> None:
    assert lacking(Silent(), trace_of(closed=False)) == (
        "only where it was closed: a line, and another",
    )
