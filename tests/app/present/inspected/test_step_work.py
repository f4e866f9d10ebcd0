"""What ran in the step of a decode or of a batch, and why it took long."""

from __future__ import annotations

from collections import defaultdict

import polars as pl
import pytest

from stepscope.app.palette import DECODE, MIXED, RECOMPUTE, WAITS
from stepscope.app.present.blocks import AtSpan, Paragraph, Table
from stepscope.app.present.inspected.step_work import step_blocks
from stepscope.app.timeline import SpanView, Timeline
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def crowd() -> Trace:
    return Trace.open(ROOT / "sample_traces" / "vllm_crowd.trace")


@pytest.fixture(scope="module")
def timeline(crowd: Trace) -> Timeline:
    return Timeline(crowd)


def spans_in(timeline: Timeline, section: str, *states: int) -> list[SpanView]:
    return [
        span
        for lane in timeline.lanes
        if lane.section == section
        for span in timeline.spans(lane.id, *timeline.bounds, 10_000)
        if span.state in states
    ]


def test_the_batch_of_every_step_is_summed_as_its_rows_are(
    crowd: Trace, timeline: Timeline
) -> None:
    counted: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for row in crowd.batch_rows.collect().iter_rows(named=True):
        kind = "recompute" if row["is_recompute"] else row["phase"]
        own = counted[row["step"]][kind]
        own[0] += 1
        own[1] += row["num_tokens"]

    spans = spans_in(timeline, "steps", DECODE, MIXED, RECOMPUTE)[::4]
    for span in spans:
        step = timeline.row(span.ref)["step"]
        table = next(b for b in step_blocks(span, timeline, crowd) if isinstance(b, Table))
        assert {row[1]: [*row[2:]] for row in table.rows} == counted[step], step

    assert len(spans) > 40


def test_a_decode_that_took_long_says_whose_prompts_were_computed_in_its_step(
    crowd: Trace, timeline: Timeline
) -> None:
    usual = crowd.steps.filter(pl.col("kind") == "decode").select(pl.col("dur_ns").median())
    usual_ns = int(usual.collect().item())
    rows = crowd.batch_rows.collect()
    num_long = 0
    for span in spans_in(timeline, "requests", DECODE):
        if span.end_ns - span.start_ns < 1.5 * usual_ns:
            continue
        first = next(iter(step_blocks(span, timeline, crowd)))
        is_long = span.end_ns - span.start_ns >= 2 * usual_ns
        assert isinstance(first, Paragraph) == is_long, span
        if not isinstance(first, Paragraph):
            continue
        step = rows["step"][span.ref[1]]
        prompts = rows.filter(
            pl.col("step") == step, pl.col("phase") == "prefill", ~pl.col("is_recompute")
        )
        assert prompts.is_empty() or f"{prompts['num_tokens'].sum():,} token" in first.text
        num_long += 1

    assert num_long > 5


def test_who_computed_most_leads_to_its_lane_at_that_step(crowd: Trace, timeline: Timeline) -> None:
    span = spans_in(timeline, "steps", MIXED)[0]
    blocks = [*step_blocks(span, timeline, crowd)]
    [most] = [b for b in blocks if isinstance(b, Table) and b.title == "who computed most"]

    name, lead = str(most.rows[0][0]), most.leads[0]

    assert isinstance(lead, AtSpan)
    assert lead.lane == timeline.lane_of_request(0, name)
    assert lead.since_ns == span.start_ns - timeline.bounds[0]


def test_nothing_is_said_of_spans_in_which_no_step_ran(crowd: Trace, timeline: Timeline) -> None:
    for span in spans_in(timeline, "requests", *WAITS):
        assert not [*step_blocks(span, timeline, crowd)]
