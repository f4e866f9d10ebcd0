"""The engine's steps: one lane per rank, a mixed step split by its prefill and decode tokens."""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.timeline.lanes import (
    LaneName,
    Strips,
    clipped,
    end_of,
    placeable,
    several_ranks,
    span_rows,
)
from stepscope.ingest.trace import Trace

ABOUT = (("steps", None),)
STATE_OF_KIND = {
    "prefill": palette.PREFILL,
    "decode": palette.DECODE,
    "idle": palette.IDLE,
    "dummy": palette.IDLE,
}


def step_strips(trace: Trace, last_ns: int) -> Strips:
    """Lay out `steps`; one that never ended reaches `last_ns`."""
    steps = (
        placeable(trace, "steps")
        .with_columns(
            start=clipped(pl.col("ts_ns")),
            end=end_of(pl.col("ts_ns"), pl.col("dur_ns"), last_ns),
            prefill=pl.col("num_prefill_tokens").fill_null(0).clip(0),
            decode=pl.col("num_decode_tokens").fill_null(0).clip(0),
        )
        .select("rank", "ref", "kind", "start", "end", "prefill", "decode")
        .collect()
    )
    ranks = steps["rank"].unique().sort().to_list()
    names = tuple(LaneName(rank, several_ranks("", rank, ranks), "engine", ABOUT) for rank in ranks)
    lane = pl.col("rank").replace_strict(ranks, range(len(ranks)), return_dtype=pl.UInt32)
    return Strips(names, span_rows(_split(steps.with_columns(lane=lane)), "steps"))


def _split(steps: pl.DataFrame) -> pl.DataFrame:
    """Cut mixed steps in two; a share that is not known is taken as half."""
    is_mixed = pl.col("kind").eq_missing("mixed")
    tokens = pl.col("prefill") + pl.col("decode")
    share = pl.when(tokens > 0).then(pl.col("prefill") / tokens).otherwise(0.5)
    dur_ns = pl.col("end") - pl.col("start")
    middle = pl.col("start") + (dur_ns * share).round().cast(pl.Int64)
    mixed = steps.filter(is_mixed)
    whole = steps.filter(~is_mixed).with_columns(
        state=pl.col("kind").replace_strict(
            STATE_OF_KIND, default=palette.UNKNOWN, return_dtype=pl.UInt8
        )
    )
    return pl.concat(
        [
            whole,
            mixed.filter(middle > pl.col("start")).with_columns(
                end=middle, state=pl.lit(palette.PREFILL, pl.UInt8)
            ),
            mixed.filter((middle < pl.col("end")) | (dur_ns == 0)).with_columns(
                start=middle, state=pl.lit(palette.DECODE, pl.UInt8)
            ),
        ]
    )
