"""The segments of steps: the parts of a mixed batch, which run by themselves, one after the other.

A lane for each rank; where the two halves of a batch overlap, each half has a lane. Where only the
time of the step was recorded, that is divided as `ingest.derive.segments` says.
"""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.timeline.lanes.lane import LaneName, LaneSpans, several_ranks, span_rows
from stepscope.ingest.derive.segments import AT_ONCE, segment_times
from stepscope.ingest.trace import Trace

SECTION = "segments"
STATE_OF_PHASE = {"prefill": palette.PREFILL, "decode": palette.DECODE}
_LANE = ["rank", "half"]


def segment_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `segments`; one that has not ended reaches `last_ns`."""
    spans = segment_times(trace).collect()
    states = trace.segments.select(
        pl.col("phase").replace_strict(
            STATE_OF_PHASE, default=palette.UNKNOWN, return_dtype=pl.UInt8
        )
    ).collect()["phase"]
    spans = spans.select(
        "rank", "ref",
        half=pl.when(division=AT_ONCE).then("segment"),
        start="from_ns",
        end=pl.max_horizontal("from_ns", pl.col("to_ns").fill_null(last_ns)),
        state=states.gather(spans["ref"]),
    )  # fmt: skip
    lanes = spans.select(_LANE).unique().sort(_LANE).with_row_index("lane")
    ranks = lanes["rank"].unique().to_list()
    names = tuple(
        LaneName(rank, several_ranks("", rank, ranks), _label(half), ((SECTION, half),))
        for rank, half in lanes.select(_LANE).iter_rows()
    )
    placed = spans.join(lanes, on=_LANE, nulls_equal=True, maintain_order="left")
    return LaneSpans(names, [span_rows(placed, "segments")])


def _label(half: int | None) -> str:
    return "segments" if half is None else f"half {half}"
