"""Lengths of steps of which a log says only when they began."""

from __future__ import annotations

import polars as pl

LENGTHS = "lengths of steps, each until the line of the next, 10 s at most"
"""What the manifest counts those lengths as that were inferred so."""
LONGEST_NS = 10_000_000_000
"""A gap longer than this is taken for an engine without work, not for a step."""


def with_lengths(steps: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Let a step without a length last until the next of its rank, 10 s at most; and how many did.

    The last step of a rank has no length: the log does not say that it ended. Nor has one before a
    clock that was set back.
    """
    ordered = steps.sort("rank", "step", maintain_order=True)
    gap = pl.col("ts_ns").shift(-1).over("rank") - pl.col("ts_ns")
    length = pl.when(gap >= 0).then(gap.clip(upper_bound=LONGEST_NS))
    lasted = ordered.with_columns(dur_ns=pl.coalesce("dur_ns", length))
    return lasted, ordered["dur_ns"].null_count() - lasted["dur_ns"].null_count()
