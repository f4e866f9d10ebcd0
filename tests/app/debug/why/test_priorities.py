"""Under a priority policy `why` names both priorities, and no bound on how often one is passed."""

from __future__ import annotations

from typing import Any

from stepscope.app.debug import Session
from stepscope.app.debug.why import Chain, why
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event
from tests.traces import trace_of

BY_PRIORITY = {"scheduler": {"policy": "priority"}, "engine": {"max_num_seqs": 2}}
MS = 1_000_000


def traced(
    waiting: Row, *running: Row, config: dict[str, Any] | None = None, resource: str = "seat"
) -> Trace:
    """Requests that run, and one that lacks a running slot; rows are `event` arrivals."""
    lifecycle = [waiting, *running]
    lifecycle += [event(row["request"], "admit", 5 * MS) for row in running]
    decision = {
        "step": 1, "ts_ns": 6 * MS, "subject_kind": "request", "subject": waiting["request"],
        "verdict": "deferred", "reason": "every running slot is taken", "resource": resource,
        "needed": 1, "available": 0,
    }  # fmt: skip
    steps = [{"step": n, "ts_ns": (6 + n) * MS, "dur_ns": MS, "kind": "decode"} for n in (1, 2)]
    order = sorted(lifecycle, key=lambda row: row["ts_ns"])
    return trace_of(
        lifecycle=order, decisions=[decision], steps=steps, config=config or BY_PRIORITY
    )


def arrival(request: str, at_ms: int, priority: int | None) -> Row:
    return event(request, "arrive", at_ms * MS, priority=priority)


def asked(trace: Trace, request: str) -> Chain:
    session = Session(trace)
    session.goto(step=2)
    return why(session, request)


def test_a_request_of_low_priority_waits_for_those_above_it_that_came_later() -> None:
    trace = traced(arrival("low", 0, 5), arrival("a", 1, -1), arrival("b", 2, -1))

    chain = asked(trace, "low")

    assert chain.root.says == (
        "it has priority 5, and 2 running slots are held by 2 requests of higher priority that "
        "came after it: a and 1 more (-1)"
    )
    assert "passed" not in chain.first_line


def test_an_urgent_request_waits_for_those_below_it() -> None:
    trace = traced(arrival("urgent", 3, -5), arrival("a", 1, 10), arrival("b", 2, 7))

    chain = asked(trace, "urgent")

    assert chain.root.says == (
        "it has priority -5, and 2 running slots are held by 2 requests of lower priority: "
        "b (7), a (10)"
    )
    assert "reserved for urgent requests" in chain.root.would_change


def test_of_equal_priorities_the_one_that_came_first_is_passed() -> None:
    trace = traced(arrival("first", 0, 1), arrival("a", 1, 1), arrival("b", 2, 1))

    assert "a bound on how often it is passed" in asked(trace, "first").first_line


def test_without_a_priority_policy_priorities_explain_nothing() -> None:
    config = {"scheduler": {"policy": "fcfs"}, "engine": {"max_num_seqs": 2}}
    trace = traced(arrival("first", 0, 5), arrival("a", 1, -1), arrival("b", 2, -1), config=config)

    assert "a bound on how often it is passed" in asked(trace, "first").first_line


def test_of_a_priority_that_is_not_recorded_nothing_is_said() -> None:
    trace = traced(arrival("first", 0, None), arrival("a", 1, -1), arrival("b", 2, -1))

    assert "priority" not in asked(trace, "first").first_line


def test_slots_that_do_not_change_hands_in_the_trace_are_those_of_requests_that_run() -> None:
    trace = traced(
        arrival("urgent", 3, -5), arrival("a", 1, 10), arrival("b", 2, 10), resource="slot"
    )

    assert "2 slots are held by 2 requests of lower priority" in asked(trace, "urgent").first_line
