"""The core groups: AIC, AIV0 and AIV1 of each, and what held a core without running."""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import (
    LaneName,
    LaneSpans,
    Subject,
    clipped,
    end_of,
    placeable,
    several_ranks,
    span_rows,
)
from stepscope.ingest.derive.states import with_held
from stepscope.ingest.schema import CORE_KINDS
from stepscope.ingest.trace import Trace

STATE_OF_SHAPE = {"AIC": palette.AIC, "AIV": palette.AIV, "MIX": palette.MIX, "DUMMY": palette.IDLE}
KEY = ["rank", "group", "core_kind", "core"]


def core_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `core_spans`; a block that never ended reaches `last_ns`."""
    spans = (
        with_held(placeable(trace, "core_spans", "core"))
        .with_columns(
            start=clipped(pl.col("ts_ns")),
            end=end_of(
                pl.col("ts_ns"), clipped(pl.col("end_ns")) - clipped(pl.col("ts_ns")), last_ns
            ),
            held=clipped(pl.col("held_ns")),
            state=pl.col("shape").replace_strict(
                STATE_OF_SHAPE, default=palette.UNKNOWN, return_dtype=pl.UInt8
            ),
        )
        .select(*KEY, "ref", "start", "end", "held", "state")
        .collect()
    )
    lanes = _lanes(spans.select(KEY).unique())
    placed = spans.join(lanes, on=KEY, nulls_equal=True).sort("lane", "start")
    ranks = lanes["rank"].unique().to_list()
    names = tuple(_name(*key, ranks=ranks) for key in lanes.select(KEY).iter_rows())
    return LaneSpans(names, span_rows(pl.concat([placed, _held(placed)]), "core_spans"))


def _name(
    rank: int, group: int | None, kind: str | None, core: int | None, *, ranks: list[int]
) -> LaneName:
    about: tuple[Subject, ...] = (("group", group), ("core", core))
    if group is None:
        label = f"core {core} {kind or ''}".rstrip()
        return LaneName(rank, several_ranks("in no known group", rank, ranks), plain(label), about)
    label = kind or f"core {core}"
    return LaneName(rank, several_ranks(f"group {group}", rank, ranks), plain(label), about)


def _lanes(seen: pl.DataFrame) -> pl.DataFrame:
    """Every core of every group that was seen, in order; one that never ran has no number."""
    in_group = pl.col("core_kind").is_not_null() & pl.col("group").is_not_null()
    groups = seen.filter(in_group).select("rank", "group").unique()
    kinds = pl.DataFrame({"core_kind": CORE_KINDS}, schema={"core_kind": pl.String})
    idle = groups.join(kinds, how="cross").join(seen, on=["rank", "group", "core_kind"], how="anti")
    every = pl.concat([seen, idle.with_columns(core=pl.lit(None, pl.Int32))])
    return every.sort(KEY, nulls_last=True).with_row_index("lane")


def _held(placed: pl.DataFrame) -> pl.DataFrame:
    """The time in which a core was free of the block before and waited to begin the next."""
    return placed.with_columns(
        start="held", end="start", state=pl.lit(palette.HELD, pl.UInt8)
    ).filter(pl.col("start") < pl.col("end"))
