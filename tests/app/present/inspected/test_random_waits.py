"""200 random waits of eight traces: what the pane says is what `blame`, `why` and queries say."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.why import why
from stepscope.app.palette import PREEMPTED, REASONS, WAITS
from stepscope.app.present.blocks import Fact, Heading, Paragraph, Table
from stepscope.app.present.inspected.span_wait import wait_blocks, wait_of
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes.wait_reasons import STATE_OF_CAUSE
from stepscope.app.units import duration
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.tiers import slow

SAMPLES = (
    "vllm_crowd.trace", "vllm_prefixes.trace", "sglang_retractions.trace",
    "fcfs-preemption-before.trace",
)  # fmt: skip
RUNS = ("waiting-queue", "slot-recycling", "mixed-batches", "ep-multiplexing")
NUM_WAITS = 25  # of each trace


@pytest.fixture(params=[*SAMPLES, *RUNS])
def trace(
    request: pytest.FixtureRequest, sample_traces: Path, recorded_once: RecordedOnce
) -> Trace:
    name: str = request.param
    if name in SAMPLES:
        return Trace.open(sample_traces / name)
    path = recorded_once.run(name, "before").path
    assert path is not None
    return Trace.open(path)


def some_waits(timeline: Timeline, number: int) -> list[tuple[int, str, SpanView]]:
    """Random waits, each whole, with their requests."""
    found = [
        (*who, timeline.whole(span)._replace(label=""))
        for lane in timeline.lanes
        if lane.section == "requests" and (who := timeline.request_of(lane.id))
        for span in timeline.spans(lane.id, *timeline.bounds, 2_000)
        if span.state in (*WAITS, PREEMPTED)
    ]
    chosen = random.Random(200).sample(found, min(number, len(found)))
    assert chosen
    return chosen


@slow
def test_a_wait_is_what_blame_why_and_queries_say(trace: Trace) -> None:
    timeline, session = Timeline(trace), Debugger(trace).session
    named = blame(trace).intervals.with_columns(pl.col("cause").cast(pl.String))
    intervals = named.rows(named=True)
    lifecycle = trace.sql("select rank, request, event, ts_ns from lifecycle")
    for rank, request, span in some_waits(timeline, NUM_WAITS):
        where = (trace.name, request, span)
        blocks = [*wait_blocks(span, timeline, trace)]
        facts = {block.label: block.values[0] for block in blocks if isinstance(block, Fact)}
        own = [row for row in intervals if (row["rank"], row["request"]) == (rank, request)]

        # blame: the causes of that time, by hand
        wait = wait_of(trace, rank, request, span.start_ns, span.end_ns)
        counted: Counter[str] = Counter()
        for row in own:
            if row["from_ns"] >= span.start_ns and row["to_ns"] <= span.end_ns:
                counted[row["cause"]] += row["ns"]
        assert {each.cause: each.ns for each in wait.reasons} == counted, where
        table = next(
            (b for b in blocks if isinstance(b, Table) and b.title == "why it waited"), None
        )
        shown = {} if table is None else {row[1]: row[2] for row in table.rows}
        assert shown == {cause: duration(ns) for cause, ns in counted.items()}, where

        # a query: the events of the request that begin and end it
        events = lifecycle.filter(pl.col("request") == request, pl.col("rank") == rank)
        events = events.select("event", "ts_ns")
        at = {ts: event for event, ts in events.rows()}
        ended = at.get(span.end_ns)
        if ended in ("admit", "resume", "finish", "abort", "reject", "error"):
            assert facts["ended by"].startswith(f"{ended} at "), where
        if span.state == PREEMPTED:
            assert "preempt" in events.filter(pl.col("ts_ns") == span.start_ns)["event"], where

        # why: the chain at the last step that was formed before it ended
        if rank != session.rank or not any(isinstance(block, Heading) for block in blocks):
            continue
        moments = session.moments
        last = moments.position(span.end_ns - 1)
        place = None if last.step is None else moments.place_of(last.step)
        formed = last if place is None else moments.at_step(place)
        chain = why(session, request, formed if formed.ts_ns >= span.start_ns else last)
        assert Paragraph(chain.first_line) in blocks, where


@slow
def test_every_part_of_a_wait_holds_only_the_causes_of_its_reason(trace: Trace) -> None:
    timeline = Timeline(trace)
    parts = [
        (*who, span)
        for lane in timeline.lanes
        if lane.section == "requests" and (who := timeline.request_of(lane.id))
        for span in timeline.spans(lane.id, *timeline.bounds, 2_000)
        if span.state in REASONS
    ]
    assert parts
    for rank, request, span in random.Random(7).sample(parts, min(NUM_WAITS, len(parts))):
        wait = wait_of(trace, rank, request, span.start_ns, span.end_ns)
        assert {STATE_OF_CAUSE[each.cause] for each in wait.reasons} == {span.state}, span
