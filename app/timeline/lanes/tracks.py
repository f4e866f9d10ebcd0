"""The tracks: spans of processes, threads and streams, what is nested below what encloses it."""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import (
    LaneName,
    LaneSpans,
    clipped,
    end_of,
    ordered,
    placeable,
    several_ranks,
    span_rows,
)
from stepscope.ingest.trace import Trace

KEY = ["rank", "track"]


def track_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `spans`; a slice that never ended reaches `last_ns`, an instant is 0 ns long."""
    never_ended = pl.col("form") == "unfinished"
    dur_ns = pl.when(never_ended).then(pl.col("dur_ns")).otherwise(pl.col("dur_ns").fill_null(0))
    spans = (
        placeable(trace, "spans", "track")
        .select(
            *KEY,
            "ref",
            start=clipped(pl.col("ts_ns")),
            end=end_of(pl.col("ts_ns"), dur_ns, last_ns),
            category=pl.col("category").fill_null(""),
        )
        .collect()
    )
    categories = spans["category"].unique().to_list()
    shades = [palette.shade(category) for category in categories]
    state = pl.col("category").replace_strict(categories, shades, return_dtype=pl.UInt8)
    lanes = ordered(spans.select(KEY).unique())
    ranks = lanes["rank"].unique().to_list()
    names = tuple(_name(rank, track, ranks) for rank, track in lanes.select(KEY).iter_rows())
    placed = spans.with_columns(state=state).join(lanes, on=KEY)
    return LaneSpans(names, span_rows(placed, "spans"))


def _name(rank: int, track: str, ranks: list[int]) -> LaneName:
    group, _, label = plain(track).rpartition(" / ")
    return LaneName(rank, several_ranks(group, rank, ranks), label, (("track", track),))
