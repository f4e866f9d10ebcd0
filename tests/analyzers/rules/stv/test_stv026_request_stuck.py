"""STV026: a request was admitted and is in no batch, while later ones finished."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv026_request_stuck import RequestStuck
from stepscope.ingest.manifest import ClockInfo
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event
from tests.looped import looped
from tests.traces import trace_of

S = 1_000_000_000
Tables = dict[str, list[Row]]


def row(request: str, second: float) -> Row:
    return {
        "step": int(second), "ts_ns": round(second * S), "request": request, "phase": "prefill",
        "num_tokens": 1,
    }  # fmt: skip


def served() -> Tables:
    """Ten requests one after the other, of 20 seconds each, from second 1 to 201."""
    lifecycle, batch_rows = [], []
    for number in range(10):
        name, begin = f"r{number}", 1 + 20 * number
        lifecycle += [
            event(name, "admit", begin * S),
            event(name, "first-token", (begin + 1) * S),
            event(name, "finish", (begin + 20) * S),
        ]
        batch_rows.append(row(name, begin))
    return {"lifecycle": lifecycle, "batch_rows": batch_rows}


def found_beside(events: list[Row], rows: tuple[Row, ...] = ()) -> list[Finding]:
    """What is found when a request was there beside those that were served."""
    tables: Any = served()
    tables["lifecycle"] += events
    tables["batch_rows"] += rows
    return list(check(trace_of(**tables), (RequestStuck(),)).findings)


def test_a_request_that_is_never_in_a_batch_is_found_at_its_admission() -> None:
    (found,) = found_beside([event("stuck", "admit", 1 * S)])

    assert found.message == (
        "stuck was admitted 200.0 s before the end and is in no batch, while 10 requests that were "
        "admitted later finished, each within 20.0 s"
    )
    assert (found.request, found.ts_ns, found.count) == ("stuck", 1 * S, 1)


def test_several_are_one_finding_at_the_one_that_is_stuck_for_longest() -> None:
    (found,) = found_beside([event(f"s{n}", "admit", n * S) for n in (9, 5, 7)])

    assert (found.request, found.count) == ("s5", 3)
    assert found.message.endswith("; 2 more are stuck like it")


@looped(
    "events, rows",
    [
        pytest.param([event("r", "admit", S)], (row("r", 2),), id="it is in a batch"),
        pytest.param([event("r", "admit", S), event("r", "first-token", 2 * S)], (),
                     id="it decodes for long"),
        pytest.param([event("r", "admit", S), event("r", "abort", 150 * S)], (), id="it ended"),
        pytest.param([event("r", "arrive", S)], (), id="it waits in the queue"),
        pytest.param([event("r", "admit", S), event("r", "preempt", 2 * S)], (),
                     id="it was preempted"),
        pytest.param([event("r", "admit", 150 * S)], (), id="for 51 seconds"),
    ],
)  # fmt: skip
def test_a_request_that_is_not_stuck_is_clean(events: list[Row], rows: tuple[Row, ...]) -> None:
    assert found_beside(events, rows) == []


def test_a_slow_engine_is_clean() -> None:
    """Of two others one took as long as this one is there."""
    lifecycle = [event("r", "admit", 0)]
    for number in range(4):
        lifecycle += [event(f"s{number}", "admit", S), event(f"s{number}", "finish", 180 * S)]
    rows = [row(f"s{number}", 1) for number in range(4)]

    found = check(trace_of(lifecycle=lifecycle, batch_rows=rows), (RequestStuck(),)).findings

    assert found == ()


def test_recordings_with_decisions_and_logs_without_a_clock_are_not_judged(record: Record) -> None:
    tables: Any = served()
    traces = [record("fcfs-preemption"), trace_of(**tables, clock=ClockInfo("none"))]

    for trace in traces:
        assert check(trace, (RequestStuck(),)).not_applicable == ("STV026",)
