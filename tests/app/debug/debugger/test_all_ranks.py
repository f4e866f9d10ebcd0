"""The debugger goes back and forth, stops where it was told to, and takes the other ranks along."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stepscope.app.debug.debugger import Debugger
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import a_fight_for_a_block, two_ranks
from tests.looped import looped
from tests.traces import trace_of


def steps_stopped_at(debugger: Debugger) -> list[int | None]:
    """The steps of all hits, as `continue` comes to them."""
    found = []
    while debugger.resume():
        found.append(debugger.position.step)
    return found


def test_it_begins_at_the_first_step_and_goes_by_steps_and_changes() -> None:
    debugger = Debugger(a_fight_for_a_block())

    moved = [debugger.forward(), debugger.forward("change"), debugger.back("change")]

    assert moved == [True, True, True]
    assert (debugger.position.step, debugger.position.ts_ns) == (2, 200)


@looped(
    ("wanted", "at_ns"),
    [("3", 300), ("0.2us", 290), ("50%", 290), ("start", 90), ("end", 490), ("#0", 90)],
)
def test_goto_takes_a_step_a_time_a_share_and_a_change(wanted: str, at_ns: int) -> None:
    debugger = Debugger(a_fight_for_a_block())

    debugger.goto(wanted)

    assert debugger.position.ts_ns == min(at_ns, 400)


def test_a_condition_on_steps_stops_at_each_step_that_meets_it() -> None:
    debugger = Debugger(a_fight_for_a_block())
    debugger.add("break", "steps: num_waiting > 2 and num_waiting < 5")

    assert steps_stopped_at(debugger) == [3, 4]


def test_reverse_continue_comes_to_the_same_hits_the_other_way() -> None:
    debugger = Debugger(a_fight_for_a_block())
    debugger.add("watch", "block 5")
    forward, backward = [], []
    debugger.goto("start")
    while hit := debugger.resume():
        forward.append(hit.here)
    while hit := debugger.reverse():
        backward.append(hit.here)

    assert [here.ts_ns for here in forward] == [100, 290, 300]
    assert backward == forward[::-1]


def test_without_a_hit_it_goes_to_the_end_and_to_the_start() -> None:
    debugger = Debugger(a_fight_for_a_block())
    debugger.add("break", "finish")

    assert debugger.resume() is None
    assert debugger.position.step == 4
    assert debugger.reverse() is None
    assert debugger.position.ts_ns == 90


def test_there_has_to_be_something_to_stop_at() -> None:
    with pytest.raises(ConfigError, match="nothing to stop at; make one with break"):
        Debugger(a_fight_for_a_block()).resume()


def test_other_ranks_follow_by_time() -> None:
    debugger = Debugger(two_ranks())
    debugger.goto("2")

    assert [(rank, position.step) for rank, position in debugger.others()] == [(1, 1)]

    debugger.switch(1)

    assert (debugger.rank, debugger.position.step, debugger.position.ts_ns) == (1, 1, 200)


def test_a_stop_is_hit_on_whatever_rank_comes_first() -> None:
    debugger = Debugger(two_ranks())
    debugger.add("break", "steps: step = 2")
    ranks = []
    while debugger.resume():
        ranks.append(debugger.rank)

    assert ranks == [0, 1]


def test_a_rank_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="no rank 7; it has 0, 1"):
        Debugger(two_ranks()).switch(7)


def test_a_trace_without_a_row_has_nowhere_to_go() -> None:
    debugger = Debugger(trace_of())

    assert not debugger.forward()
    assert debugger.position.step is None
    with pytest.raises(ConfigError, match="not recorded"):
        debugger.add("break", "preempt")


def test_hits_of_a_recorded_run_are_the_rows_that_meet_the_condition(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "fcfs-preemption-before.trace")
    debugger = Debugger(trace)
    condition = "num_waiting > 10 and kv_blocks_free > 0"
    wanted = trace.steps.filter(pl.sql_expr(condition)).collect()["step"].to_list()
    debugger.add("break", f"steps: {condition}")

    assert steps_stopped_at(debugger) == wanted
