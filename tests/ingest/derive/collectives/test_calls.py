"""Recorded collective calls: how each ended, which differ or are alone, and who never came."""

from __future__ import annotations

from typing import Any

from stepscope.ingest.derive.collectives.calls import absences, calls
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def call(rank: int, ordinal: int | None, ts_ns: int, **more: Any) -> dict[str, Any]:
    row = {"op": "all-reduce", "group": "ep", "expected_ranks": "0,1", "dur_ns": 5, **more}
    return {"rank": rank, "ordinal": ordinal, "ts_ns": ts_ns, **row}


def of_ranks(*rows: dict[str, Any], ranks: list[int] | None = None) -> Trace:
    return trace_of(collectives=[*rows], ranks=ranks or [0, 1])


def fates(trace: Trace) -> list[tuple[int, str, str | None]]:
    return calls(trace).select("rank", "fate", "mark").rows()


def test_calls_that_agree_and_return_bear_no_mark() -> None:
    trace = of_ranks(call(0, 0, 10), call(1, 0, 12))

    assert fates(trace) == [(0, "returned", None), (1, "returned", None)]
    assert absences(trace, calls(trace)).is_empty()


def test_ranks_that_wait_for_each_other_in_different_operations_are_blocked_and_differ() -> None:
    trace = of_ranks(call(0, 0, 10, op="broadcast", dur_ns=None), call(1, 0, 12, dur_ns=None))

    assert fates(trace) == [(0, "blocked", "differs"), (1, "blocked", "differs")]
    assert absences(trace, calls(trace)).is_empty()


def test_of_several_ranks_the_one_that_differs_is_marked_and_the_majority_is_not() -> None:
    rows = [call(rank, 0, 10, expected_ranks="0,1,2") for rank in (0, 1)]
    trace = of_ranks(*rows, call(2, 0, 10, expected_ranks="0,1,2", dtype="f16", op="broadcast"))

    assert [mark for _, _, mark in fates(trace)] == [None, None, "differs"]


def test_a_rank_that_never_came_is_absent_since_the_first_other_waits() -> None:
    trace = of_ranks(call(0, 0, 10), call(1, 0, 10), call(0, 1, 20, dur_ns=None))

    absent = absences(trace, calls(trace))

    assert absent.select("rank", "from_ns", "ref").rows() == [(1, 20, 2)]


def test_a_rank_of_the_manifest_without_any_call_is_absent_and_an_unrecorded_one_is_not() -> None:
    row = call(0, 0, 10, expected_ranks="0,1,2", dur_ns=None)
    trace = of_ranks(row)

    assert absences(trace, calls(trace))["rank"].to_list() == [1]


def test_a_call_that_returned_and_no_other_rank_came_to_is_alone() -> None:
    trace = of_ranks(call(0, 0, 10), call(1, 0, 10), call(0, 1, 20))

    assert [mark for _, _, mark in fates(trace)] == [None, None, "alone"]


def test_calls_before_the_other_rank_was_recorded_are_not_alone() -> None:
    trace = of_ranks(call(0, 0, 10), call(0, 1, 20), call(1, 1, 20))

    assert [mark for _, _, mark in fates(trace)] == [None, None, None]


def test_a_call_without_an_end_before_a_later_one_ended_at_a_time_that_is_not_recorded() -> None:
    trace = of_ranks(call(0, 0, 10, dur_ns=None), call(0, 1, 20), ranks=[0])

    assert [fate for _, fate, _ in fates(trace)] == ["unknown", "returned"]


def test_calls_without_a_place_and_sends_are_shown_and_not_compared() -> None:
    trace = of_ranks(call(0, None, 10), call(1, 3, 12, op="send"))

    assert [mark for _, _, mark in fates(trace)] == [None, None]


def test_what_was_inferred_from_a_profile_is_no_recorded_call() -> None:
    assert calls(of_ranks(call(0, 0, 10, inferred="nccl"))).is_empty()
