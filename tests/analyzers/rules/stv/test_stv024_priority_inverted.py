"""STV024: a request waits while requests of lower priority run."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv024_priority_inverted import PriorityInverted
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event
from tests.looped import looped
from tests.traces import trace_of

S = 1_000_000_000
BY_PRIORITY = {"scheduler": {"policy": "priority"}}


def served(request: str, priority: int, arrive: int, admit: int, end: int) -> list[Row]:
    """What happened to a request, in seconds."""
    return [
        event(request, "arrive", arrive * S, priority=priority),
        event(request, "admit", admit * S), event(request, "finish", end * S),
    ]  # fmt: skip


def of(*requests: list[Row], config: dict[str, Any] | None = None) -> Trace:
    rows = [row for request in requests for row in request]
    decision = {
        "step": 1, "ts_ns": 2 * S, "subject_kind": "request", "subject": "urgent",
        "verdict": "passed-over", "resource": "slot",
    }  # fmt: skip
    return trace_of(lifecycle=rows, decisions=[decision], config=config or BY_PRIORITY)


def found_in(*requests: list[Row]) -> list[Finding]:
    return PriorityInverted().check(of(*requests))


LOW = [served(f"low-{n}", 10, 0, 0, 30) for n in range(3)]


def test_an_urgent_request_that_waits_for_slots_of_others_is_found() -> None:
    (found,) = found_in(*LOW, served("urgent", -5, 1, 30, 31))

    assert found.message == (
        "urgent (priority -5) waited 29.0 s while 3 requests of lower priority ran (10); the "
        "running slots were taken"
    )
    assert (found.ts_ns, found.end_ns) == (1 * S, 30 * S)


@looped(
    "requests",
    [
        pytest.param([*LOW, served("same", 10, 1, 30, 31)], id="the same priority"),
        pytest.param([*LOW, served("lower", 11, 1, 30, 31)], id="a lower one"),
        pytest.param([*LOW, served("urgent", -5, 1, 9, 31)], id="for eight seconds"),
        pytest.param([served("low", 10, 0, 0, 5), served("urgent", -5, 1, 30, 31)],
                     id="nothing of lower priority runs for long"),
        pytest.param([served("high", -9, 0, 0, 30), served("urgent", -5, 1, 30, 31)],
                     id="behind a higher one"),
    ],
)  # fmt: skip
def test_waits_that_priorities_explain_are_clean(requests: list[list[Row]]) -> None:
    assert found_in(*requests) == []


@looped(
    ("num_steps", "admit_ms", "num_found"),
    [(80, 3_000, 1), (80, 1_900, 0), (6, 3_000, 0)],
    ids=["most of it", "less than a quarter", "a few steps in all"],
)
def test_a_short_run_is_judged_by_a_share_of_it(
    num_steps: int, admit_ms: int, num_found: int
) -> None:
    """Steps of 8 s in all, and one that comes after a tenth of a second."""
    ms = S // 1_000
    life = [
        event("low", "arrive", 0, priority=10), event("low", "admit", 0),
        event("urgent", "arrive", 100 * ms, priority=-5), event("urgent", "admit", admit_ms * ms),
        event("low", "finish", 8 * S), event("urgent", "finish", 8 * S),
    ]  # fmt: skip
    steps = [
        {"step": n, "ts_ns": n * 8 * S // num_steps, "dur_ns": 8 * S // num_steps, "kind": "decode"}
        for n in range(num_steps)
    ]
    trace = trace_of(lifecycle=life, steps=steps, config=BY_PRIORITY)

    assert len(PriorityInverted().check(trace)) == num_found


def test_an_engine_that_schedules_otherwise_is_not_judged() -> None:
    trace = of(*LOW, served("urgent", -5, 1, 30, 31), config={"scheduler": {"policy": "fcfs"}})

    assert check(trace, (PriorityInverted(),)).not_applicable == ("STV024",)
