"""Lengths of steps of which a log says only when they began."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

LENGTHS = "lengths of steps, each until the line of the next, 10 s at most"
"""What the manifest counts those lengths as that were inferred so."""
LONGEST_NS = 10_000_000_000
"""A gap longer than this is taken for an engine without work, not for a step."""


def with_lengths(
    steps: pl.DataFrame, over: Iterable[tuple[int, int]] = ()
) -> tuple[pl.DataFrame, int]:
    """Let a step without a length last until the next of its rank, 10 s at most; and how many did.

    `over` are ranks and times at which a line says that no step begun before still runs. The last
    step of a rank has no length where none follows: the log does not say that it ended. Nor has
    one before a clock that was set back.
    """
    known = pl.DataFrame(list(over), schema={"rank": steps.schema["rank"], "over_ns": pl.Int64},
                         orient="row").sort("over_ns")  # fmt: skip
    ordered = (
        steps.sort("ts_ns", maintain_order=True)
        .join_asof(known, left_on="ts_ns", right_on="over_ns", by="rank", strategy="forward",
                   check_sortedness=False)
        .sort("rank", "step", maintain_order=True)
    )  # fmt: skip
    gap = pl.col("ts_ns").shift(-1).over("rank") - pl.col("ts_ns")
    is_sound = gap.is_null() | (gap >= 0)
    until = pl.min_horizontal(gap, pl.col("over_ns") - pl.col("ts_ns"))
    length = pl.when(is_sound).then(until.clip(upper_bound=LONGEST_NS))
    lasted = ordered.with_columns(dur_ns=pl.coalesce("dur_ns", length)).drop("over_ns")
    return lasted, ordered["dur_ns"].null_count() - lasted["dur_ns"].null_count()
