"""STV009: a slot or seat free and a request waiting for more than one step."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.finding import Finding
from stepscope.analyzers.rules.stv009_idle_capacity import IdleCapacity
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, decision
from tests.analyzers.serving_rows import decode, prefill
from tests.traces import trace_of

FOUR_SEATS: dict[str, Any] = {"engine": {"max_num_seqs": 8, "num_slots": 4}}


def idle(*steps: Row, config: dict[str, Any] | None = None, told: str = "") -> list[Finding]:
    kept = decision("request", "r9", "deferred", 5, reason=told, resource="slot") if told else None
    decisions = [kept] if kept else []
    chosen = FOUR_SEATS if config is None else config
    return IdleCapacity().check(trace_of(steps=steps, decisions=decisions, config=chosen))


def test_a_seat_that_stays_free_while_somebody_waits_is_found() -> None:
    steps = [decode(n, 3, num_waiting=2) for n in range(1, 5)]

    (found,) = idle(*steps, told="slots are filled when all are free")

    assert found.message == (
        "up to 1 of 4 seats stayed free for 4 steps (1 to 4, 40 ns) with up to 2 requests waiting, "
        'because "slots are filled when all are free"'
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (1, 10, 50, 1)
    assert found.evidence["steps"] == 4
    assert found.evidence["lost seat time_ns"] == 40


def test_without_a_declaration_the_most_that_ever_ran_is_how_many_seats_there_are() -> None:
    steps = [decode(1, 4, num_waiting=1), *(decode(n, 2, num_waiting=1) for n in range(2, 5))]

    (found,) = idle(*steps, config={})

    assert (found.step, found.evidence["seats"]) == (2, 4)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([decode(1, 3, num_waiting=2)], id="one step"),
        pytest.param([decode(n, 4, num_waiting=2) for n in range(1, 9)], id="every seat taken"),
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


def test_slots_that_are_filled_when_all_are_free_are_found(record: Record) -> None:
    settings = {"slots": "4", "requests": "8", "max_cap": "48"}

    (found,) = IdleCapacity().check(
        record("slot-recycling", fault="refill-when-drained", **settings)
    )

    assert found.evidence["because"] == "slots are filled when all are free"
    assert (found.step, found.evidence["steps"]) == (12, 22)


@pytest.mark.parametrize("scenario", ["fcfs-preemption", "slot-recycling", "mix-admission"])
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert IdleCapacity().check(record(scenario)) == []
