"""STV006: a wait far above service while there was room."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.finding import Finding
from stepscope.analyzers.rules.stv006_head_of_line_blocked import HeadOfLineBlocked
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, decision, event
from tests.analyzers.serving_rows import decode, row
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
        "batches, because big was before it and did not fit"
    )
    assert (found.request, found.ts_ns, found.end_ns) == ("small", 10, 90)


def test_a_request_that_would_not_have_fitted_either_is_clean() -> None:
    assert behind(needed=10, available=4, prompt_len=65) == []


def served_alone(config: dict[str, Any], num_running: int = 1) -> list[Finding]:
    """Four requests, two steps each, one after the other."""
    names = ["a", "b", "c", "d"]
    life: list[Row] = []
    for place, name in enumerate(names):
        life += [
            event(name, "arrive", 5), event(name, "admit", 10 + 20 * place),
            event(name, "finish", 30 + 20 * place),
        ]  # fmt: skip
    trace = trace_of(
        lifecycle=life, config=config,
        steps=[decode(n, 1, num_running=num_running) for n in range(1, 9)],
        batch_rows=[row(n, names[(n - 1) // 2]) for n in range(1, 9)],
    )  # fmt: skip
    return HeadOfLineBlocked().check(trace)


def test_requests_that_run_one_at_a_time_are_found() -> None:
    (found,) = served_alone({"engine": {"max_num_seqs": 1, "num_slots": 1}})

    assert (found.request, found.count) == ("d", 1)
    assert found.message.endswith(
        "60 ns with room against 20 ns in batches, because one request ran at a time"
    )


def test_slots_that_the_engine_does_not_use_are_room() -> None:
    (found,) = served_alone({"engine": {"max_num_seqs": 2, "num_slots": 4}}, num_running=2)

    assert found.message.endswith("because fewer ran at once than there are slots")


@pytest.mark.parametrize("config", [{}, {"engine": {"max_num_seqs": 4, "num_slots": 4}}])
def test_waiting_while_nothing_is_known_to_be_free_is_clean(config: dict[str, Any]) -> None:
    assert served_alone(config, num_running=4) == []


def test_a_protocol_that_serves_one_sequence_is_found_and_one_with_slots_is_not(
    record: Record,
) -> None:
    pytest.importorskip("torch")

    (found,) = HeadOfLineBlocked().check(record("ep-multiplexing", "before"))

    assert found.request == "req-03"
    assert HeadOfLineBlocked().check(record("ep-multiplexing")) == []


@pytest.mark.parametrize("scenario", ["fcfs-preemption", "slot-recycling", "mix-admission"])
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert HeadOfLineBlocked().check(record(scenario)) == []
