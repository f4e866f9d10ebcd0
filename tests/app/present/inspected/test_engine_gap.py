"""What is said of a time at which an engine ran no step."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.causes import BY_NAME
from stepscope.app.debug.debugger import Debugger
from stepscope.app.present.blocks import AtSpan, Block, Fact, Paragraph, Table, Title
from stepscope.app.present.details import selection_blocks
from stepscope.app.present.inspected.engine_gap import gap_blocks
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.units import duration
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.traces import trace_of


@pytest.fixture(scope="module")
def crowd() -> Trace:
    return Trace.open(ROOT / "sample_traces" / "vllm_crowd.trace")


def steps_of(timeline: Timeline) -> tuple[int, list[SpanView]]:
    lane = next(lane.id for lane in timeline.lanes if lane.section == "steps")
    return lane, [*timeline.spans(lane, *timeline.bounds, 10_000)]


def tables(blocks: list[Block]) -> dict[str, list[str]]:
    return {
        block.title: [str(row[0]) for row in block.rows]
        for block in blocks
        if isinstance(block, Table)
    }


def test_every_gap_says_how_long_it_is_and_who_waited_as_the_debugger_does(crowd: Trace) -> None:
    timeline = Timeline(crowd)
    session = Debugger(crowd).session
    lane, spans = steps_of(timeline)
    ends = [(a.end_ns, b.start_ns) for a, b in pairwise(spans) if b.start_ns - a.end_ns > 1]

    for began, ended in ends[::17]:
        at = (began + ended) // 2
        blocks = selection_blocks(Selection(point=(lane, at)), timeline, crowd)
        state = session.state_at(session.moments.position(at))
        shown = tables(blocks)
        assert blocks[0] == Title("no step")
        assert shown.get("waiting", []) == [*(state.waiting or ())][:8]
        assert shown.get("admitted, and in no batch", []) == [*(state.running or ())][:8]
        assert duration(ended - began) in str(blocks[2])

    assert len(ends) > 100


def test_the_steps_around_it_are_gone_to(crowd: Trace) -> None:
    timeline = Timeline(crowd)
    lane, (first, second, *_) = steps_of(timeline)

    blocks = [*gap_blocks(lane, first.end_ns + 1, timeline, crowd)]

    leads = {block.label: block.to for block in blocks if isinstance(block, Fact) and block.to}
    assert leads == {
        "step before": AtSpan(lane, first.start_ns - timeline.bounds[0]),
        "step after": AtSpan(lane, second.start_ns - timeline.bounds[0]),
    }


def test_nothing_is_said_within_a_step_or_on_another_lane(crowd: Trace) -> None:
    timeline = Timeline(crowd)
    lane, (first, *_) = steps_of(timeline)
    other = next(each.id for each in timeline.lanes if each.section == "requests")

    assert not [*gap_blocks(lane, first.start_ns, timeline, crowd)]
    assert not [*gap_blocks(other, first.end_ns + 1, timeline, crowd)]


def test_who_was_there_is_unknown_without_events_of_requests() -> None:
    steps = [{"step": n, "kind": "decode", "ts_ns": n * 100, "dur_ns": 10} for n in (1, 2)]
    trace = trace_of(steps=steps)
    timeline = Timeline(trace)
    lane, _ = steps_of(timeline)

    blocks = [*gap_blocks(lane, 150, timeline, trace)]

    [told] = [block.text for block in blocks if isinstance(block, Paragraph)][1:]
    assert "not recorded" in told
    assert not tables(blocks)


def test_who_waits_in_a_gap_is_listed_with_what_it_lacked(crowd: Trace) -> None:
    timeline = Timeline(crowd)
    lane, spans = steps_of(timeline)
    late = next(span for span in spans if span.start_ns - timeline.bounds[0] > 150_000_000)
    at = late.end_ns + 10_000

    blocks = [*gap_blocks(lane, at, timeline, crowd)]

    [waiting] = [b for b in blocks if isinstance(b, Table) and b.title == "waiting"]
    why = {str(name): text for name, text in waiting.rows}
    intervals = blame(crowd).intervals.filter(pl.col("from_ns") <= at, pl.col("to_ns") > at)
    causes = dict(intervals.select("request", pl.col("cause").cast(pl.String)).rows())
    assert why
    assert why == {name: BY_NAME[causes[name]].meaning for name in why}
