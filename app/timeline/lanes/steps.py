"""The engine's steps: a lane for each rank and stage of a pipeline, a step split by its tokens.

These were computed for prefill, decode or recompute.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.app import palette
from stepscope.app.timeline.lanes.lane import (
    LaneName,
    LaneSpans,
    clipped,
    end_of,
    placeable,
    several_ranks,
    span_rows,
)
from stepscope.app.timeline.lanes.recomputed import PHASES, with_recomputed
from stepscope.ingest.derive.states import step_times
from stepscope.ingest.trace import Trace

ABOUT = (("steps", None),)
STATE_OF_KIND = {
    "prefill": palette.PREFILL,
    "decode": palette.DECODE,
    "idle": palette.IDLE,
    "dummy": palette.IDLE,
}
BATCH = "batch_rows"
ON_GPU = "on the GPU"
LANE = ("rank", "pp_stage")
"""Steps of two stages of a pipeline are under way at once: each has a lane of its own."""
STATE_OF_PART = {
    "recompute": palette.RECOMPUTE,
    "prefill": palette.PREFILL,
    "decode": palette.DECODE,
}


def step_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `steps`; the last of a rank reaches `last_ns` where it has not ended."""
    tokens = {
        "recompute": "recompute_tokens",
        "prefill": "num_prefill_tokens",
        "decode": "num_decode_tokens",
    }
    steps = (
        with_recomputed(known_steps(trace), trace)
        .with_columns(
            start=clipped(pl.col("ts_ns")),
            end=end_of(pl.col("ts_ns"), pl.col("lasts_ns"), last_ns),
            **{name: pl.col(column).fill_null(0).clip(0) for name, column in tokens.items()},
        )
        .select(*LANE, "ref", "kind", "start", "end", "is_listed", *tokens)
        .collect()
    )
    ranks = steps["rank"].unique().sort().to_list()
    lanes = steps.select(LANE).unique().sort(LANE).with_row_index("lane")
    names = tuple(
        LaneName(rank, several_ranks("", rank, ranks), _called(stage), ABOUT)
        for rank, stage in lanes.select(LANE).iter_rows()
    )
    parts = _split(steps.join(lanes, on=LANE, nulls_equal=True, maintain_order="left"))
    shown = (
        span_rows(parts.filter(is_listed), table)
        for is_listed, table in ((pl.col("is_listed"), "steps"), (~pl.col("is_listed"), BATCH))
    )
    on_gpu = _on_gpu(trace, len(names), ranks)
    return LaneSpans((*names, *on_gpu.names), [pl.concat([*shown, *on_gpu.parts])])


def _on_gpu(trace: Trace, first_lane: int, ranks: list[int]) -> LaneSpans:
    """A lane of each rank whose steps tell when the GPU executed what they launched."""
    start = pl.col("gpu_ts_ns")
    steps = (
        placeable(trace, "steps", "gpu_ts_ns", "gpu_dur_ns")
        .with_columns(
            start=clipped(start),
            end=end_of(start, pl.col("gpu_dur_ns"), 0),
            state=pl.col("kind").replace_strict(
                STATE_OF_KIND, default=palette.UNKNOWN, return_dtype=pl.UInt8
            ),
        )
        .select("rank", "ref", "start", "end", "state")
        .collect()
    )
    lanes = steps.select("rank").unique().sort("rank").with_row_index("lane", first_lane)
    names = tuple(LaneName(rank, several_ranks("", rank, ranks), ON_GPU) for rank in lanes["rank"])
    return LaneSpans(names, [span_rows(steps.join(lanes, on="rank"), "steps")])


def _called(stage: int | None) -> str:
    return "engine" if stage is None else f"stage {stage}"


def known_steps(trace: Trace) -> pl.LazyFrame:
    """The rows of `steps` that have a place, and one for each step known by its batch alone.

    Adds `lasts_ns`: how long it took, else until the next of its rank; null behind the last. `ref`
    is the row of `steps`, or where not `is_listed` the first of the batch, whose rows tell tokens.
    """
    key = ["rank", "step"]
    listed = placeable(trace, "steps").with_columns(is_listed=pl.lit(True))
    found = pl.concat([listed, _of_batches(trace).join(listed, on=key, how="anti")], how="diagonal")
    until = pl.col("to_ns") - clipped(pl.col("ts_ns"))
    return (
        found.join(step_times(trace).select(*key, "to_ns"), on=key, how="left")
        .with_columns(lasts_ns=pl.coalesce("dur_ns", until))
        .drop("to_ns")
        .sort("rank", "ts_ns", "ref")
    )


def _of_batches(trace: Trace) -> pl.LazyFrame:
    """A step for each batch: when it was formed, and what its rows add up to."""
    tokens = {
        phase: pl.col("num_tokens").filter(pl.col("phase") == phase).sum().cast(pl.Int64)
        for phase in PHASES
    }
    has = {phase: (pl.col("phase") == phase).any() for phase in PHASES}
    both = pl.when("prefill", "decode").then(pl.lit("mixed"))
    kind = both.when("prefill").then(pl.lit("prefill")).when("decode").then(pl.lit("decode"))
    return (
        placeable(trace, BATCH, "step")
        .group_by("rank", "step")
        .agg(
            pl.col("ts_ns").min(), pl.col("ref").min(), **has,
            **{f"num_{phase}_tokens": told for phase, told in tokens.items()},
        )
        .with_columns(kind=kind, is_listed=pl.lit(False))
        .drop(PHASES)
    )  # fmt: skip


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
