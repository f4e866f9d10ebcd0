"""Runs of steps, one after the other, for which something holds."""

from __future__ import annotations

import polars as pl


def streaks(steps: pl.LazyFrame, holds: pl.Expr, *more: pl.Expr, **named: pl.Expr) -> pl.LazyFrame:
    """Runs of a rank's steps for which `holds` is true; what is not known does not hold.

    `steps` has rank, step, ts_ns, end_ns. Gives rank, step (the first), last_step, ts_ns, end_ns,
    num_steps, and the aggregates `more` and `named`, which must not depend on the order of rows.
    """
    flagged = steps.with_columns(_holds=holds.fill_null(value=False))
    changes = (pl.col("_holds") != pl.col("_holds").shift(1)).over("rank")
    return (
        flagged.sort("rank", "ts_ns", "step", "_holds")
        .with_columns(_streak=changes.fill_null(value=True).cum_sum().over("rank"))
        .filter("_holds")
        .group_by("rank", "_streak")
        .agg(
            pl.col("step").min(),
            pl.col("ts_ns").min(),
            pl.col("end_ns").max(),
            *more,
            **named,
            last_step=pl.col("step").max(),
            num_steps=pl.len().cast(pl.Int64),
        )
        .drop("_streak")
    )


def worst_of_each_rank(streaks: pl.LazyFrame, **totals: pl.Expr) -> pl.LazyFrame:
    """The longest streak of each rank, with count (of streaks), all_steps, and sums `totals`."""
    longest = pl.all().exclude("rank").sort_by("num_steps", -pl.col("ts_ns"), "step").last()
    return streaks.group_by("rank").agg(
        longest,
        **totals,
        count=pl.len(),
        all_steps=pl.col("num_steps").sum(),
    )
