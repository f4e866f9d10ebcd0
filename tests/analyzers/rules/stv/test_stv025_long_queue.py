"""STV025: requests spend most of their latency in the queue, by their own events alone."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv025_long_queue import LongQueue
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped
from tests.traces import trace_of

S = 1_000_000_000


def served(request: str, arrive: float, admit: float, end: float) -> list[Row]:
    """What happened to a request, in seconds."""
    moments = {"arrive": arrive, "admit": admit, "finish": end}
    return [event(request, what, round(at * S)) for what, at in moments.items()]


FAST = [row for n in range(4) for row in served(f"fast-{n}", n, n + 0.01, n + 3.5)]
SLOW = [row for n in range(16) for row in served(f"slow-{n}", 4 + n, 34 + n, 37.5 + n)]


def found_in(*rows: Row) -> list[Finding]:
    return LongQueue().check(trace_of(lifecycle=rows))


def test_a_long_queue_is_one_finding_with_requests_seconds_and_share() -> None:
    (found,) = found_in(*FAST, *SLOW)

    assert found.message == (
        "16 of 20 requests waited 30.0 s on average in the queue (at most 30.0 s), 89.6% of their "
        "latency; up to 16 waited at the same time"
    )
    assert (found.request, found.count) == ("slow-0", 16)
    assert (found.ts_ns, found.end_ns) == (4 * S, 34 * S)
    assert found.evidence["share of their latency"] == 0.8955


def test_the_latency_goes_from_the_front_end_until_the_client_has_all_of_it() -> None:
    told = [
        event("r", "receive", 0), *served("r", 2, 10, 12), event("r", "deliver", 16 * S),
    ]  # fmt: skip

    (found,) = found_in(*told)

    assert "50.0% of their latency" in found.message


def test_what_still_waits_at_the_end_has_waited_until_then() -> None:
    (found,) = found_in(event("lost", "arrive", 0), *served("other", 19, 19.5, 20))

    assert found.message.startswith("1 of 2 requests waited 20.0 s on average")
    assert "100.0% of their latency" in found.message


def test_each_rank_has_its_finding() -> None:
    other = [row | {"rank": 1} for row in SLOW]

    found = found_in(*FAST, *SLOW, *other)

    assert [finding.count for finding in found] == [16, 16]


@looped(
    "rows",
    [
        pytest.param(FAST, id="a healthy trace"),
        pytest.param(served("short", 0, 4.9, 5), id="below the floor"),
        pytest.param(served("long", 0, 6, 60), id="a tenth of its latency"),
    ],
)
def test_waits_that_are_short_or_a_small_share_are_clean(rows: list[Row]) -> None:
    assert found_in(*rows) == []


def judged(**tables: Any) -> bool:
    trace = trace_of(lifecycle=[*FAST, *SLOW], **tables)
    return check(trace, (LongQueue(),)).not_applicable == ()


STEP = {"step": 1, "ts_ns": 0, "kind": "decode"}
BATCH = {"step": 1, "request": "fast-0", "phase": "decode", "num_tokens": 1}
DECISION = {"subject_kind": "request", "subject": "slow-0", "verdict": "deferred"}


@looped(
    ("table", "row"),
    [
        ("batch_rows", BATCH), ("decisions", DECISION), ("steps", STEP | {"num_waiting": 16}),
        ("counters", {"name": "Waiting", "value": 16.0}),
    ],
)  # fmt: skip
def test_where_the_engine_recorded_more_other_rules_judge(table: str, row: Row) -> None:
    assert not judged(**{table: [row]})


def test_a_trace_without_admissions_is_not_judged() -> None:
    told = [row for row in SLOW if row["event"] != "admit"]

    assert check(trace_of(lifecycle=told), (LongQueue(),)).not_applicable == ("STV025",)


def opened(recorded_once: RecordedOnce, scenario: str, variant: str) -> Trace:
    folder = recorded_once.run(scenario, variant, Options()).path
    assert folder is not None
    return Trace.open(folder)


def without_batches(trace: Trace) -> Trace:
    """What a scenario records, as spans would have it: events of requests alone."""
    rows = trace.lifecycle.collect().to_dicts()
    return trace_of(lifecycle=rows)


def test_a_queue_of_the_engine_is_seen_by_its_events_alone(recorded_once: RecordedOnce) -> None:
    recorded = opened(recorded_once, "fcfs-preemption", "before")

    assert not LongQueue().applies(recorded)
    assert LongQueue().check(without_batches(recorded))


def test_an_engine_with_room_for_all_has_no_long_queue(recorded_once: RecordedOnce) -> None:
    recorded = opened(recorded_once, "slot-recycling", "after")

    assert LongQueue().check(without_batches(recorded)) == []
