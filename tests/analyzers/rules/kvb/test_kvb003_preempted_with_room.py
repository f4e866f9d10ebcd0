"""KVB003: a preemption while blocks suffice."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb003_preempted_with_room import PreemptedWithRoom
from tests.analyzers.rows import Row, decision, event
from tests.traces import trace_of


def preempted(request: str, ts_ns: int, needed: int | None, available: int | None) -> Row:
    details: dict[str, Any] = {"needed": needed, "available": available, "holder": "r9"}
    return decision(
        "request", request, "preempted", ts_ns, reason="another bucket runs: len=71", **details
    )


def with_room(*rows: Row) -> list[Finding]:
    trace = trace_of(decisions=rows, lifecycle=[event("r1", "arrive", 0)])
    return PreemptedWithRoom().check(trace)


def test_a_preemption_with_enough_free_blocks_is_found() -> None:
    (found,) = with_room(preempted("r1", 5, needed=2, available=88))

    assert (found.request, found.step, found.ts_ns) == ("r1", 5, 5)
    assert found.message == (
        '1 preemption of 1 request with room, because "another bucket runs: len=*": '
        "first r1 for r9, which needed 2 KV blocks with 88 free"
    )


def test_a_preemption_that_needs_no_block_at_no_free_block_is_not_said_to_have_room() -> None:
    (found,) = with_room(preempted("r1", 5, needed=0, available=0))

    assert found.message == (
        '1 preemption of 1 request for no KV block, because "another bucket runs: len=*": '
        "first r1 for r9, which needed none"
    )


def test_preemptions_with_room_and_for_no_block_are_two_findings() -> None:
    found = with_room(*(preempted(f"r{n}", n, 0, max(0, n - 3)) for n in range(10)))

    assert [(each.count, " with room" in each.message) for each in found] == [
        (6, True),
        (4, False),
    ]


def test_preemptions_for_one_reason_are_one_finding() -> None:
    (found,) = with_room(*(preempted(f"r{n % 3}", n, 0, n + 1) for n in range(10)))

    assert (found.count, found.evidence["requests"], found.end_ns) == (10, 3, 9)


def test_a_preemption_for_lack_of_blocks_is_clean() -> None:
    assert with_room(preempted("r1", 5, needed=2, available=1)) == []


def test_a_preemption_of_which_the_need_is_not_known_is_not_judged() -> None:
    rows = [preempted("r1", 5, None, 88), preempted("r1", 6, 1, None)]

    assert with_room(*rows) == []
