"""STV009: a running slot free and a request waiting for more than one step."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv009_idle_capacity import IdleCapacity
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision, event
from tests.analyzers.serving_rows import decode, prefill, row
from tests.looped import looped
from tests.traces import trace_of

FOUR_SLOTS: dict[str, Any] = {"engine": {"max_num_seqs": 8, "num_slots": 4}}


def idle(*steps: Row, config: dict[str, Any] | None = None, told: str = "") -> list[Finding]:
    kept = decision("request", "r9", "deferred", 5, reason=told, resource="slot") if told else None
    decisions = [kept] if kept else []
    chosen = FOUR_SLOTS if config is None else config
    return IdleCapacity().check(trace_of(steps=steps, decisions=decisions, config=chosen))


def test_a_running_slot_that_stays_free_while_somebody_waits_is_found() -> None:
    steps = [decode(n, 3, num_waiting=2) for n in range(1, 5)]

    (found,) = idle(*steps, told="slots are filled when all are free")

    assert found.message == (
        "up to 1 of 4 running slots stayed free for 4 steps (1 to 4, 40 ns) with up to 2 requests "
        "waiting, "
        'because "slots are filled when all are free"'
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (1, 10, 50, 1)
    assert found.evidence["steps"] == 4
    assert found.evidence["lost slot time_ns"] == 40


def test_without_a_declaration_the_most_that_ever_ran_is_how_many_running_slots_there_are() -> None:
    steps = [decode(1, 4, num_waiting=1), *(decode(n, 2, num_waiting=1) for n in range(2, 5))]

    (found,) = idle(*steps, config={})

    assert (found.step, found.evidence["running slots"]) == (2, 4)


@looped(
    "steps",
    [
        pytest.param([decode(1, 3, num_waiting=2)], id="one step"),
        pytest.param([decode(n, 4, num_waiting=2) for n in range(1, 9)], id="every one taken"),
        pytest.param([decode(n, 3, num_waiting=0) for n in range(1, 9)], id="nobody waits"),
        pytest.param([prefill(n, 9, 3, num_waiting=2) for n in range(1, 9)], id="lets them in"),
        pytest.param(
            [
                decode(n, 3, num_waiting=2, kv_blocks_free=5, kv_blocks_total=100)
                for n in range(1, 9)
            ],
            id="blocks are short",
        ),
        pytest.param(
            [decode(n, 3, num_waiting=2, token_budget=3) for n in range(1, 9)],
            id="the budget is spent",
        ),
        pytest.param(
            [decode(n, 3, num_waiting=2, num_decode_tokens=None) for n in range(1, 9)],
            id="it is not known whether the budget is spent",
        ),
    ],
)
def test_waiting_for_a_reason_is_clean(steps: list[Row]) -> None:
    assert idle(*steps) == []


def told(needed: int | None, available: int, **more: Any) -> Row:
    """The head of the queue is told before the first step that KV blocks are short."""
    short = {"resource": "kv-block", "reason": "too few KV blocks are free"}
    return decision(
        "request", "r9", "deferred", 5, needed=needed, available=available, **short, **more
    )


def held(free: int, *decisions: Row, **more: Any) -> list[Finding]:
    """Four steps in which one of 4 slots and `free` of 100 KV blocks were free, and one waited."""
    pool = {"num_waiting": 1, "kv_blocks_free": free, "kv_blocks_total": 100}
    steps = [decode(n, 3, **pool) for n in range(1, 5)]
    return IdleCapacity().check(
        trace_of(steps=steps, decisions=decisions, config=FOUR_SLOTS, **more)
    )


@looped(("needed", "free"), [(31, 30), (76, 75)])
def test_a_head_of_the_queue_that_lacks_blocks_is_clean_however_many_are_free(
    needed: int, free: int
) -> None:
    assert held(free, told(needed, free)) == []


@looped("free", [9, 90])
def test_a_head_that_has_what_it_lacked_before_is_found_however_few_are_free(free: int) -> None:
    (found,) = held(free, told(needed=9, available=2))

    assert found.message.endswith(
        f'1 request waiting, because "too few KV blocks are free" (9 needed, {free} free)'
    )


def test_what_was_told_holds_until_the_request_leaves_the_queue() -> None:
    came = event("r9", "arrive", 1)
    left = event("r9", "abort", 15)

    assert held(50, told(60, 50), lifecycle=[came]) == []
    assert len(held(50, told(60, 50), lifecycle=[came, left])) == 1


def test_what_is_told_of_a_request_that_runs_is_no_reason_to_wait() -> None:
    runs = [event("r9", "arrive", 1), event("r9", "admit", 3)]

    (found,) = held(50, told(60, 50), lifecycle=runs)

    assert found.message.endswith("with up to 1 request waiting")


def test_those_who_are_not_ready_and_those_behind_them_take_no_running_slot() -> None:
    grammar = decision("request", "r9", "deferred", 5, reason="its grammar is being compiled")
    behind = decision("request", "r8", "deferred", 5, resource="queue", holder="r9")

    def waiting(num: int, *decisions: Row) -> list[Finding]:
        steps = [decode(n, 3, num_waiting=num) for n in range(1, 5)]
        return IdleCapacity().check(trace_of(steps=steps, decisions=decisions, config=FOUR_SLOTS))

    assert waiting(1, grammar) == []
    assert waiting(2, grammar, behind) == []
    assert len(waiting(2, grammar)) == 1
    assert len(waiting(1)) == 1


@looped(
    ("resource", "count"),
    [("grammar", 0), ("lora", 0), ("encoder-budget", 0), ("pause", 0), ("selection", 1)],
)
def test_who_is_kept_out_by_what_is_no_room_takes_no_running_slot(
    resource: str, count: int
) -> None:
    told = decision("request", "r9", "deferred", 5, reason="as told", resource=resource)
    steps = [decode(n, 3, num_waiting=1) for n in range(1, 5)]

    found = IdleCapacity().check(trace_of(steps=steps, decisions=[told], config=FOUR_SLOTS))

    assert len(found) == count


def test_a_step_that_took_blocks_from_somebody_had_none_to_spare() -> None:
    lost = [
        decision("request", f"r{n}", "deferred", 10 * n, resource="kv-block", available=50)
        for n in range(1, 5)
    ]

    assert held(50, *lost) == []
    assert len(held(50, lost[0])) == 1


@looped(("available", "count"), [(0, 0), (None, 0), (2, 1)])
def test_blocks_that_were_free_after_a_preemption_were_not_there_for_who_waits(
    available: int | None, count: int
) -> None:
    taken = [
        decision(
            "request", f"r{n}", "preempted", 10 * n, step=n,
            reason="it is the youngest", resource="kv-block", needed=2, available=available,
        )
        for n in range(1, 5)
    ]  # fmt: skip

    assert len(held(9, told(needed=5, available=2), *taken)) == count


def test_steps_that_are_formed_while_the_one_before_runs_have_their_own_reason() -> None:
    steps = [decode(n, 3, num_waiting=1, dur_ns=25) for n in (2, 3, 4)]
    steps += [decode(5, 4, num_waiting=1)]
    formed = [row(n, "r1", ts_ns=10 * n - 8) for n in range(2, 6)]
    slots = decision("request", "r9", "deferred", 12, step=2, resource="slot", reason="as told")
    lacked = decision("request", "r8", "deferred", 42, step=5, resource="seat", reason="later")

    (found,) = IdleCapacity().check(
        trace_of(steps=steps, batch_rows=formed, decisions=[slots, lacked], config=FOUR_SLOTS)
    )

    assert (found.step, found.evidence["steps"], found.evidence["because"]) == (2, 3, "as told")
    assert found.evidence["lost slot time_ns"] == (found.end_ns or 0) - (found.ts_ns or 0) == 45


def test_slots_that_are_filled_when_all_are_free_are_found(record: Record) -> None:
    settings = {"slots": "4", "requests": "8", "max_cap": "48"}

    (found,) = IdleCapacity().check(
        record("slot-recycling", fault="refill-when-drained", **settings)
    )

    assert found.evidence["because"] == "slots are filled when all are free"
    assert (found.step, found.evidence["steps"]) == (12, 22)


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert IdleCapacity().check(record(scenario)) == []


@looped(("rounds", "count"), [(4, 0), (3, 1), (0, 1)])
def test_steps_that_are_the_decodes_by_declaration_are_not_idle(rounds: int, count: int) -> None:
    pool = {"num_waiting": 1, "kv_blocks_free": 90, "kv_blocks_total": 100}
    config = {**FOUR_SLOTS, "scheduler": {"decode_rounds": rounds}}
    trace = trace_of(steps=[decode(n, 3, **pool) for n in range(1, 5)], config=config)

    assert len(IdleCapacity().check(trace)) == count
