"""Begins and ends without names, matched like brackets, all at once."""

from __future__ import annotations

import polars as pl


def brackets(halves: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Match each end to the latest open begin of its key.

    Takes `event`, `key` and `is_begin` in order of time. Gives `event` and `end` (an event) of
    those begins that have one, and the ends that have no begin.

    The level is the number of brackets open. An end that takes it below all levels before, and
    below zero, has nothing to end; among the others a begin's end is the next row of its level.
    """
    level = pl.when("is_begin").then(1).otherwise(-1).cum_sum().over("key").alias("level")
    leveled = halves.with_row_index("row").with_columns(level)
    lowest = pl.col("level").cum_min().shift(1, fill_value=0).clip(upper_bound=0).over("key")
    is_lost = ~pl.col("is_begin") & (pl.col("level") < lowest)
    marked = leveled.with_columns(is_lost.alias("is_lost"))
    inside = pl.when("is_begin").then("level").otherwise(pl.col("level") + 1)
    ordered = (
        marked.filter(~pl.col("is_lost"))
        .with_columns(level)
        .with_columns(inside.alias("level"))
        .sort("key", "level", "row")
    )
    alike = [pl.col(name) == pl.col(name).shift(-1) for name in ("key", "level")]
    is_ended = pl.all_horizontal(pl.col("is_begin"), ~pl.col("is_begin").shift(-1), *alike)
    ended = ordered.with_columns(end=pl.col("event").shift(-1)).filter(is_ended)
    return ended.select("event", "end"), marked.filter("is_lost")["event"]
