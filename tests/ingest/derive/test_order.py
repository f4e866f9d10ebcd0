"""Rows of a rank have one order: as they were counted, or else as their times tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepscope.ingest.derive.order import Order, how_known
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def told(request: str, ts_ns: int, step: int | None = 1, **more: Any) -> dict[str, Any]:
    return {"step": step, "ts_ns": ts_ns, "request": request, "event": "arrive", **more}


def taken(number: int, ts_ns: int, step: int | None = 1, **more: Any) -> dict[str, Any]:
    return {
        "step": step, "ts_ns": ts_ns, "resource": "kv-block", "id": number, "op": "claim",
        "owner": "a", **more,
    }  # fmt: skip


def order_of(trace: Trace, rank: int = 0) -> list[Any]:
    """Who arrives and which blocks are taken, in the order of the rank."""
    order = Order(trace, rank)
    arrived, claimed = order.rows("lifecycle", ["request"]), order.rows("allocations", ["id"])
    both = [*arrived.rows(), *claimed.rows()]
    return [what for what, _ in sorted(both, key=lambda row: int(row[1]))]


def test_rows_that_were_counted_come_in_that_order_whatever_their_times_say() -> None:
    trace = trace_of(
        lifecycle=[told("b", 9, seq=4), told("a", 9, seq=1)],
        allocations=[taken(7, 9, seq=2), taken(8, 3, seq=3)],
    )

    assert order_of(trace) == ["a", 7, 8, "b"]
    assert how_known(trace) == "recorded"


def test_rows_that_were_not_counted_come_by_their_times() -> None:
    trace = trace_of(lifecycle=[told("b", 9), told("a", 1)], allocations=[taken(7, 4)])

    assert order_of(trace) == ["a", 7, "b"]
    assert how_known(trace) == "inferred"


def test_of_one_moment_a_later_step_comes_later_and_requests_before_blocks() -> None:
    trace = trace_of(
        lifecycle=[told("c", 5, step=2), told("a", 5), told("b", 5)],
        allocations=[taken(8, 5, step=2), taken(7, 5)],
    )

    assert order_of(trace) == ["a", "b", 7, "c", 8]


def test_a_row_of_a_front_end_comes_behind_what_was_told_by_its_time() -> None:
    trace = trace_of(
        lifecycle=[told("front", 5), told("first", 0), told("a", 3, seq=2), told("b", 8, seq=3)]
    )

    rows = Order(trace, 0).rows("lifecycle", ["request"]).rows()
    assert rows == [("first", 0), ("a", 2), ("front", 2), ("b", 3)]


def test_every_rank_has_an_order_of_its_own() -> None:
    trace = trace_of(lifecycle=[told("a", 5, rank=1, seq=1), told("b", 5), told("c", 4)])

    assert order_of(trace, 0) == ["c", "b"]
    assert order_of(trace, 1) == ["a"]
    assert not Order(trace, 0).is_recorded


def test_what_was_told_late_makes_no_time_go_back() -> None:
    trace = trace_of(
        lifecycle=[told("a", 10, seq=1), told("late", 4, seq=2), told("b", 20, step=2, seq=3)]
    )

    order = Order(trace, 0)
    assert order.times_of([1, 2, 3]).tolist() == [10, 10, 20]
    assert [order.step_of(seq) for seq in (0, 1, 2, 3)] == [None, 1, 1, 2]
    assert [order.last_by(ts_ns) for ts_ns in (9, 10, 19, 20)] == [0, 2, 2, 3]
    assert [order.time_of(seq) for seq in (0, 2, 3)] == [10, 10, 20]


def test_rows_of_one_call_are_one_place() -> None:
    trace = trace_of(allocations=[taken(1, 5, seq=4), taken(2, 5, seq=4), taken(3, 5, seq=6)])

    assert Order(trace, 0).runs.every().tolist() == [4, 6]


def test_a_recorder_makes_an_order_and_a_trace_of_steps_needs_none(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        rec.allocations(1, 9, "kv-block", 7, "claim", "a")
        rec.lifecycle(1, 9, "a", "arrive")

    assert order_of(Trace.open(tmp_path / "run.trace")) == [7, "a"]
    assert how_known(trace_of(steps=[{"step": 1, "kind": "decode"}])) is None


@pytest.mark.parametrize("gap", [1, 3, 1_000_000])
def test_places_are_the_same_however_many_numbers_are_left_out(gap: int) -> None:
    trace = trace_of(
        lifecycle=[told("a", 30, seq=gap), told("b", 10, 2, seq=3 * gap)],
        allocations=[taken(1, 20, seq=gap), taken(2, 40, None, seq=2 * gap)],
    )

    order = Order(trace, 0)
    seqs = order.runs.every()

    assert seqs.tolist() == [gap, 2 * gap, 3 * gap]
    assert order.times_of(seqs).tolist() == [30, 40, 40]
    assert [order.step_of(seq) for seq in seqs.tolist()] == [1, 1, 2]


def test_what_nothing_was_told_of_has_no_places_and_times_before_the_first_have_none() -> None:
    empty, told_once = Order(trace_of(), 0), Order(trace_of(lifecycle=[told("a", 30, seq=7)]), 0)

    assert empty.all_last_by(np.array([5])).tolist() == [0]
    assert told_once.all_last_by(np.array([29, 30, 31])).tolist() == [0, 7, 7]
