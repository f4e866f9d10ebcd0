"""What an area adds up to on slots, queues, blocks, calls, segments and buffers, by plain sums."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from stepscope.app.timeline import Timeline
from stepscope.ingest.derive.buffer_contents import buffer_contents
from stepscope.ingest.derive.collectives.calls import calls
from stepscope.ingest.derive.queue_positions import queue_positions
from stepscope.ingest.derive.slot_spans import old_tokens, slot_spans
from stepscope.ingest.trace import Trace
from tests.conftest import ROOT
from tests.engine.recorded_once import RecordedOnce
from tests.tiers import sampled

Derive = Callable[[Trace], pl.DataFrame]
PREEMPTION, SLOTS, RANKS, SPLIT = (
    "fcfs-preemption", "slot-recycling", "ep-multiplexing", "mixed-batches",
)  # fmt: skip
TIMES = ("from_ns", "to_ns")


def sql(query: str) -> Derive:
    return lambda trace: trace.sql(query)


def of_slots(trace: Trace) -> pl.DataFrame:
    return pl.concat([slot_spans(trace).select(TIMES), old_tokens(trace).select(TIMES)])


def of_buffers(trace: Trace) -> pl.DataFrame:
    found = buffer_contents(trace.accesses, trace.segments).contents
    lost = found.drop_nulls("lost_from_ns").select(from_ns="lost_from_ns", to_ns="lost_to_ns")
    moments = trace.accesses.select(from_ns="ts_ns", to_ns="ts_ns").collect()
    return pl.concat([found.select(TIMES), lost, moments])


SPANS: dict[str, tuple[str, Derive]] = {
    "slots": (SLOTS, of_slots),
    "waiting queue": (PREEMPTION, queue_positions),
    "KV blocks": (
        PREEMPTION,
        sql("select ts_ns as from_ns, to_ns from holds where resource = 'kv-block'"),
    ),
    "collective calls": (RANKS, calls),
    "buffers": (RANKS, of_buffers),
    "segments": (
        SPLIT,
        # A step of one segment each but for a few, which are as long as their steps all together.
        sql("select ts_ns as from_ns, ts_ns + dur_ns as to_ns from steps "
            "where step in (select step from segments)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("section", sampled(SPANS, [*SPANS][:-1]))
def test_an_area_of_new_lanes_adds_up_to_a_plain_sum_over_the_rows(
    section: str, recorded_once: RecordedOnce
) -> None:
    scenario, derive = SPANS[section]
    variants = {RANKS: "v2-device-staging", SLOTS: "after", SPLIT: "before"}
    trace = (
        Trace.open(ROOT / "sample_traces" / f"{scenario}-before.trace")
        if scenario == PREEMPTION else recorded_once.trace(scenario, variants[scenario])
    )  # fmt: skip
    timeline = Timeline.of(trace)
    lanes = [lane.id for lane in timeline.lanes if lane.section == section]
    first, last = timeline.bounds
    middle = (first + last) // 2

    for start, end in ((first, last), (first, middle)):
        inside = (
            derive(trace)
            .with_columns(pl.col("to_ns").fill_null(last))
            .filter(pl.col("from_ns") < end)
            .with_columns(pl.col("to_ns").clip(upper_bound=end))
        )
        sums = timeline.area(start, end, lanes)

        assert len(inside)
        assert (
            int(sums.spans["ns"].sum())
            == inside.select((pl.col("to_ns") - pl.col("from_ns")).sum()).item()
        )
        if section != "segments":
            assert sums.by_state["num_spans"].sum() == len(inside)
        assert sums.by_state["ns"].sum() == sums.spans["ns"].sum()
