"""The engine's steps: one lane per rank, a step split by what its tokens were computed for."""

from __future__ import annotations

from collections.abc import Iterator

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
from stepscope.app.timeline.recomputed import with_recomputed
from stepscope.ingest.derive.states import step_times
from stepscope.ingest.trace import Trace

ABOUT = (("steps", None),)
STATE_OF_KIND = {
    "prefill": palette.PREFILL,
    "decode": palette.DECODE,
    "idle": palette.IDLE,
    "dummy": palette.IDLE,
}
STATE_OF_PART = {
    "recompute": palette.RECOMPUTE,
    "prefill": palette.PREFILL,
    "decode": palette.DECODE,
}


def step_strips(trace: Trace, last_ns: int) -> Strips:
    """Lay out `steps`; the last of a rank reaches `last_ns` where it has not ended."""
    tokens = {
        "recompute": "recompute_tokens",
        "prefill": "num_prefill_tokens",
        "decode": "num_decode_tokens",
    }
    times = step_times(trace).select("rank", "step", "to_ns")
    lasts = pl.coalesce(pl.col("dur_ns"), pl.col("to_ns") - clipped(pl.col("ts_ns")))
    steps = (
        with_recomputed(placeable(trace, "steps"), trace)
        .join(times, on=["rank", "step"], how="left", maintain_order="left")
        .with_columns(
            start=clipped(pl.col("ts_ns")),
            end=end_of(pl.col("ts_ns"), lasts, last_ns),
            **{name: pl.col(column).fill_null(0).clip(0) for name, column in tokens.items()},
        )
        .select("rank", "ref", "kind", "start", "end", *tokens)
        .collect()
    )
    ranks = steps["rank"].unique().sort().to_list()
    names = tuple(LaneName(rank, several_ranks("", rank, ranks), "engine", ABOUT) for rank in ranks)
    lane = pl.col("rank").replace_strict(ranks, range(len(ranks)), return_dtype=pl.UInt32)
    return Strips(names, span_rows(_split(steps.with_columns(lane=lane)), "steps"))


def _split(steps: pl.DataFrame) -> pl.DataFrame:
    """Cut steps that did several things by their tokens; a mixed one without any, in half."""
    is_mixed = pl.col("kind").eq_missing("mixed")
    is_told = (pl.col("prefill") + pl.col("decode") + pl.col("recompute")) > 0
    is_cut = is_told & (is_mixed | (pl.col("recompute") > 0))
    whole = steps.filter(~is_cut & ~is_mixed).with_columns(
        state=pl.col("kind").replace_strict(
            STATE_OF_KIND, default=palette.UNKNOWN, return_dtype=pl.UInt8
        )
    )
    halves = steps.filter(~is_told & is_mixed).with_columns(prefill=1, decode=1)
    return pl.concat(
        [whole, *_cut(pl.concat([steps.filter(is_cut), halves], how="diagonal_relaxed"))],
        how="diagonal_relaxed",
    )


def _cut(steps: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The parts of steps, one after the other, each as long as its share of the tokens."""
    whole = sum((pl.col(name) for name in STATE_OF_PART), pl.lit(0))
    dur_ns, until = pl.col("end") - pl.col("start"), pl.lit(0)
    for name, state in STATE_OF_PART.items():
        since, until = until, until + pl.col(name)
        first, last = (
            pl.col("start") + (dur_ns * (tokens / whole)).round().cast(pl.Int64)
            for tokens in (since, until)
        )
        told = steps.with_columns(start=first, end=last, state=pl.lit(state, pl.UInt8))
        lasts = (pl.col("start") < pl.col("end")) | (dur_ns == 0)
        yield told.filter(lasts & (pl.col(name) > 0))
