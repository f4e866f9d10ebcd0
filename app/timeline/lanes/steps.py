"""The engine's steps: a lane for each rank and stage of a pipeline.

A step whose batch has prompts and decodes is one span, `mixed`; how its tokens are shared is in
`parts_of_steps`. Another one that recomputes is cut by its tokens.
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
    "mixed": palette.MIXED,
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

TOKENS = {
    "recompute": "recompute_tokens",
    "prefill": "num_prefill_tokens",
    "decode": "num_decode_tokens",
}
assert tuple(STATE_OF_PART.values()) == palette.PARTS


def step_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `steps`; the last of a rank reaches `last_ns` where it has not ended."""
    steps = (
        with_recomputed(known_steps(trace), trace)
        .with_columns(
            start=clipped(pl.col("ts_ns")),
            end=end_of(pl.col("ts_ns"), pl.col("lasts_ns"), last_ns),
        )
        .with_columns(tokens_of_parts())
        .select(*LANE, "ref", "kind", "start", "end", "is_listed", *STATE_OF_PART)
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


def parts_of_steps(trace: Trace) -> pl.DataFrame:
    """Tokens by what they are computed for, a row for each of `steps`: as `STATE_OF_PART`."""
    return with_recomputed(trace.steps, trace).select(tokens_of_parts()).collect()


def parts_of_batches(trace: Trace) -> pl.DataFrame:
    """The same of steps that are known by their batch alone, a row for each of `batch_rows`.

    The first row of a batch tells its tokens, the others none.
    """
    steps = with_recomputed(known_steps(trace).filter(~pl.col("is_listed")), trace)
    return (
        trace.batch_rows.select("step")
        .with_row_index("ref")
        .join(steps.select("ref", *tokens_of_parts()), on="ref", how="left", maintain_order="left")
        .select(pl.col(*STATE_OF_PART).fill_null(0))
        .collect()
    )


def tokens_of_parts() -> list[pl.Expr]:
    """The columns of `STATE_OF_PART`, of steps as `with_recomputed` has them."""
    return [pl.col(column).fill_null(0).clip(0).alias(name) for name, column in TOKENS.items()]


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
    """Give steps their state: mixed where a batch has prompts and decodes, which is not cut.

    Other steps that recompute are cut by their tokens. A mixed step that tells no tokens is mixed,
    one that has tokens of one phase alone is of that phase.
    """
    is_mixed, is_both = pl.col("kind").eq_missing("mixed"), is_mixed_step(*STATE_OF_PART)
    is_cut = (pl.col("recompute") > 0) & ~is_both
    of_kind = pl.col("kind").replace_strict(
        STATE_OF_KIND, default=palette.UNKNOWN, return_dtype=pl.UInt8
    )
    one_phase = (
        pl.when(pl.col("decode") > 0).then(palette.DECODE).otherwise(palette.PREFILL).cast(pl.UInt8)
    )
    state = pl.when(is_mixed & ~is_both).then(one_phase).otherwise(of_kind)
    whole = steps.filter(~is_cut).with_columns(state=state)
    return pl.concat([whole, *_cut(steps.filter(is_cut))], how="diagonal_relaxed")


def is_mixed_step(recompute: str, prefill: str, decode: str) -> pl.Expr:
    """Tell a mixed step that is not of one phase alone, by columns of tokens without nulls."""
    has_prompts, has_decodes = pl.col(prefill) + pl.col(recompute) > 0, pl.col(decode) > 0
    return pl.col("kind").eq_missing("mixed") & (has_prompts == has_decodes)


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
