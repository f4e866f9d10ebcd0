"""How many tokens of each step's batch were computed before, and thrown away by a preemption."""

from __future__ import annotations

import polars as pl

from stepscope.ingest.trace import Trace

PHASES = ("prefill", "decode")


def with_recomputed(steps: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add `recompute_tokens`, and take them out of `num_prefill_tokens` and `num_decode_tokens`.

    A step counts them as prefill or decode, whichever their rows are; where the trace has no rows
    of batches, nobody knows and `recompute_tokens` is null.
    """
    key = ["rank", "step"]
    is_again = pl.col("is_recompute").fill_null(value=False)
    again = (
        trace.batch_rows.filter(is_again)
        .group_by(key)
        .agg(
            pl.col("num_tokens").filter(pl.col("phase") == phase).sum().alias(f"_{phase}")
            for phase in PHASES
        )
    )
    none = pl.lit(0 if trace.has("batch_rows") else None, pl.Int64)
    counts = [pl.coalesce(f"_{phase}", none) for phase in PHASES]
    left = {
        f"num_{phase}_tokens": (
            pl.col(f"num_{phase}_tokens") - pl.col(f"_{phase}").fill_null(0)
        ).clip(0)
        for phase in PHASES
    }
    return (
        steps.join(again, on=key, how="left", maintain_order="left")
        .with_columns(recompute_tokens=counts[0] + counts[1], **left)
        .drop([f"_{phase}" for phase in PHASES])
    )
