"""STV006: a wait far above service while there was room."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv006_head_of_line_blocked import HeadOfLineBlocked
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision, event, life
from tests.analyzers.serving_rows import decode, row
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

PAGED = {"engine": {"max_num_seqs": 8, "block_size": 16}}


def behind(needed: int, available: int, prompt_len: int = 16) -> list[Finding]:
    """`small` waits from 10 to 90 behind `big`, runs for one step; `big` lacks blocks."""
    arrived = [
        event("big", "arrive", 0, prompt_len=160, max_tokens=1),
        event("small", "arrive", 0, prompt_len=prompt_len, max_tokens=1),
    ]
    short: dict[str, Any] = {"resource": "kv-block", "needed": needed, "available": available}
    told = [
        decision("request", "big", "deferred", 10, **short),
        decision("request", "small", "deferred", 10, resource="queue", holder="big"),
    ]
    admitted = [event(name, "admit", 90) for name in ("big", "small")]
    trace = trace_of(
        lifecycle=[*arrived, *admitted], decisions=told, config=PAGED,
        steps=[decode(n, 1) for n in range(1, 10)], batch_rows=[row(9, "small"), row(9, "big")],
    )  # fmt: skip
    return HeadOfLineBlocked().check(trace)


def test_a_request_that_fits_where_the_head_of_the_queue_does_not_is_found() -> None:
    (found,) = behind(needed=10, available=4)

    assert found.message == (
        "1 request waited while there was room: worst small, 80 ns with room against 10 ns in "
        "batches; it needed 1 of 4 free KV blocks, and big, which was before it, 10"
    )
    assert (found.request, found.ts_ns, found.end_ns) == ("small", 10, 90)


def test_a_request_that_would_not_have_fitted_either_is_clean() -> None:
    assert behind(needed=10, available=4, prompt_len=65) == []


def test_who_still_waits_at_the_end_of_the_trace_waited_until_then() -> None:
    arrived = [
        event("big", "arrive", 0, prompt_len=160, max_tokens=1),
        event("small", "arrive", 0, prompt_len=16, max_tokens=1),
    ]
    short: dict[str, Any] = {"resource": "kv-block", "needed": 10, "available": 4}
    told = [
        decision("request", "big", "deferred", 10, **short),
        decision("request", "small", "deferred", 10, resource="queue", holder="big"),
    ]
    trace = trace_of(
        lifecycle=[*arrived, *life("other", 0, 1, 99)], decisions=told, config=PAGED,
        steps=[decode(n, 1) for n in range(1, 9)], batch_rows=[row(8, "other")],
    )  # fmt: skip

    (found,) = HeadOfLineBlocked().check(trace)

    assert (found.request, found.evidence["worst_blocked_ns"]) == ("small", 89)


def served_alone(slots: int, **step: Any) -> list[Finding]:
    """Four requests, two steps each, one after the other, on an engine with so many slots."""
    names = ["a", "b", "c", "d"]
    life: list[Row] = []
    for place, name in enumerate(names):
        life += [
            event(name, "arrive", 5), event(name, "admit", 10 + 20 * place),
            event(name, "finish", 30 + 20 * place),
        ]  # fmt: skip
    trace = trace_of(
        lifecycle=life, config={"engine": {"max_num_seqs": 1, "num_slots": slots}},
        steps=[decode(n, 1) | step for n in range(1, 9)],
        batch_rows=[row(n, names[(n - 1) // 2]) for n in range(1, 9)],
    )  # fmt: skip
    return HeadOfLineBlocked().check(trace)


def test_slots_that_the_engine_does_not_use_are_room() -> None:
    (found,) = served_alone(4)

    assert found.message == (
        "1 request waited while there was room: worst d, 60 ns with room against 20 ns in batches; "
        "on average 3.0 of 4 slots were free"
    )


def test_slots_are_free_also_in_a_step_that_had_begun_before_the_wait() -> None:
    late = [event("late", "arrive", 25), event("late", "admit", 90), event("late", "finish", 92)]
    narrow, wide = (decode(1, 1, ts_ns=0, dur_ns=50), decode(2, 3, ts_ns=50, dur_ns=50))
    trace = trace_of(
        lifecycle=[*life("other", 0, 1, 99), *late],
        config={"engine": {"max_num_seqs": 4, "num_slots": 4}},
        steps=[narrow, wide], batch_rows=[row(2, "late")],
    )  # fmt: skip

    (found,) = HeadOfLineBlocked(max_ratio=0.5).check(trace)

    assert "late, 65 ns with room" in found.message
    assert found.evidence["free"] == pytest.approx((25 * 3 + 40 * 1) / 65)


def test_steps_that_overlap_are_room_for_the_time_in_which_any_ran() -> None:
    (found,) = served_alone(4, dur_ns=13)

    assert found.evidence["worst_blocked_ns"] == 60
    assert found.evidence["worst_served_ns"] == 23


def test_requests_that_wait_for_the_end_of_others_in_an_engine_of_one_slot_are_found() -> None:
    (found,) = served_alone(1)

    assert found.message == (
        "3 requests waited for the only slot: worst d, which waited 60 ns for others to "
        "end and was in batches for 20 ns"
    )


@looped(
    ("more", "num_found"),
    [
        ({"kv_blocks_free": 5, "kv_blocks_total": 9}, 1),
        ({"kv_blocks_free": 4, "kv_blocks_total": 9}, 0),
    ],
    ids=["memory for a second one", "a pool that is short"],
)
def test_one_slot_is_in_the_way_where_it_is_what_is_short(
    more: dict[str, int], num_found: int
) -> None:
    assert len(served_alone(1, **more)) == num_found


def test_a_free_slot_is_no_room_where_a_pool_of_blocks_may_lack_them() -> None:
    assert served_alone(4, kv_blocks_free=0, kv_blocks_total=9) == []


@looped("num_running", [4, 5])
def test_waiting_for_a_slot_is_clean(num_running: int) -> None:
    assert served_alone(4, num_running=num_running) == []


def test_an_engine_that_uses_one_of_its_slots_is_found(record: Record) -> None:
    (found,) = HeadOfLineBlocked().check(record("slot-recycling", fault="one-slot-used"))

    assert (found.evidence["needed"], found.evidence["free"]) == (3, 2.0)


@looped(("requests", "num_found"), [("1", 0), ("2", 1), ("4", 3), ("7", 6)])
def test_a_protocol_with_one_slot_makes_all_but_the_first_wait(
    record: Record, requests: str, num_found: int
) -> None:
    found = HeadOfLineBlocked().check(record("ep-multiplexing", "before", requests=requests))

    assert sum(each.count for each in found) == num_found


def test_with_decisions_and_slots_it_judges_only_where_it_is_known_how_many_run(
    record: Record,
) -> None:
    trace = record("ep-multiplexing", "before")
    nothing = pl.lit(None, pl.Int64).alias("num_running")
    steps = trace.steps.with_columns(nothing)

    assert HeadOfLineBlocked().applies(trace)
    assert not HeadOfLineBlocked().applies(trace.replacing({"steps": steps}, trace.manifest))


@slow
@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert HeadOfLineBlocked().check(record(scenario)) == []
