"""Intervals of what was recorded: who held what from when to when, and turns in batches."""

from __future__ import annotations

from stepscope.ingest.derive.holding_intervals import INTERVALS, intervals_of
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def a_trace() -> Trace:
    """`a` holds block 1, `b` shares it; `a` is in steps 1, 2 and 4."""
    block = {"resource": "kv-block", "id": 1}
    row = {"request": "a", "phase": "decode", "num_tokens": 2}
    return trace_of(
        steps=[{"step": step, "ts_ns": 10 * step, "kind": "decode"} for step in (1, 2, 3, 4)],
        allocations=[
            {**block, "ts_ns": 10, "op": "claim", "owner": "a"},
            {**block, "ts_ns": 20, "op": "share", "owner": "b"},
            {**block, "ts_ns": 30, "op": "release", "owner": "a"},
        ],
        batch_rows=[{**row, "step": step, "ts_ns": 10 * step} for step in (1, 2, 4)],
    )


def test_a_hold_goes_from_its_claim_to_its_release_and_one_that_never_ended_has_no_end() -> None:
    held = a_trace().sql("select owner, ts_ns, to_ns, dur_ns from holds order by ts_ns")

    assert held.rows() == [("a", 10, 30, 20), ("b", 20, None, None)]


def test_a_turn_is_of_steps_in_a_row() -> None:
    turns = a_trace().sql("select step, last_step, num_steps, num_tokens from turns")

    assert turns.rows() == [(1, 2, 2, 4), (4, 4, 1, 2)]


def test_occupancy_counts_holds_after_each_change() -> None:
    held = a_trace().sql("select ts_ns, to_ns, num_held from occupancy")

    assert held.rows() == [(10, 20, 1), (20, 30, 2), (30, None, 1)]


def test_a_claim_ends_what_another_held_and_never_gave_back() -> None:
    block = {"resource": "slot", "id": 1, "op": "claim"}
    trace = trace_of(
        allocations=[{**block, "ts_ns": 10, "owner": "a"}, {**block, "ts_ns": 30, "owner": "b"}]
    )

    assert trace.sql("select owner, to_ns from holds").rows() == [("a", 30), ("b", None)]


def test_the_columns_are_those_that_are_documented() -> None:
    trace = a_trace()
    made = intervals_of({table.name: trace.table(table.name) for table in TABLES})

    for table in INTERVALS:
        assert tuple(made[table.name].collect_schema().names()) == table.names
