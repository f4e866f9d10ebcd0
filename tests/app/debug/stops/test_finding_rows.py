"""Findings as rows of a table: where one stands that names no rank, and that it is reached."""

from __future__ import annotations

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.debug.commands import run
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.stops.finding_rows import findings_of, lowest_rank
from stepscope.app.present.plain_text import lines
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def rank_one_alone() -> Trace:
    return trace_of(
        steps=[
            {"rank": 1, "step": step, "ts_ns": 100 * step, "dur_ns": 90, "kind": "decode"}
            for step in (1, 2, 3)
        ]
    )


def found_at(step: int, rank: int | None = None) -> CheckResult:
    finding = Finding("TRC003", "inferred", Severity.INFO, "of the run", "record it", rank=rank,
                      step=step, ts_ns=100 * step)  # fmt: skip
    return CheckResult("a.trace", (finding,), {}, {"TRC003": 1}, ("steps",))


def debugger_of(checked: CheckResult) -> Debugger:
    debugger = Debugger(rank_one_alone())
    debugger.tables.share_checked(checked)
    return debugger


def test_a_finding_that_names_no_rank_stands_at_the_lowest_that_has_a_step() -> None:
    trace = rank_one_alone()

    assert lowest_rank(trace) == 1
    assert findings_of(found_at(2), 1)["rank"].to_list() == [1]
    assert findings_of(found_at(2, rank=0), 1)["rank"].to_list() == [0]


def test_a_finding_that_names_no_rank_is_gone_to_where_there_is_no_rank_0() -> None:
    debugger = debugger_of(found_at(2))
    run(debugger, "break finding TRC003")

    told = lines(run(debugger, "continue").blocks)

    assert told[0] == "stop 1, break finding TRC003"
    assert (debugger.rank, debugger.position.step) == (1, 2)


def test_a_hit_where_one_stands_is_said_to_be_there_as_going_on_leaves_it_behind() -> None:
    debugger = debugger_of(found_at(1))

    stopped = lines(run(debugger, "break finding TRC003").blocks)
    gone_on = lines(run(debugger, "continue").blocks)
    back = lines(run(debugger, "rc").blocks)

    assert stopped == ["stop 1: break finding TRC003, 1 hit; it is here"]
    assert gone_on[0] == (
        "no stop is hit up to the end; 1 hit came before, and rc goes to the last"
    )
    assert back[0] == "stop 1, break finding TRC003"
    assert debugger.position.step == 1
