"""The one definition of a quantile: linear interpolation between the two nearest values.

It is the default of `numpy.percentile` and of vLLM's benchmark, and "linear" of Polars: the median
of an even number of values is the mean of the two middle ones.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl


def quantile_of(times: pl.Series, at: float) -> int | None:
    """Return a quantile in whole units, such as nanoseconds; None if there is no value."""
    quantile = times.quantile(at, "linear")
    return None if quantile is None else round(quantile)


def quantile_expr(times: pl.Expr, at: float) -> pl.Expr:
    """Return the same as an expression: Int64, null if there is no value."""
    return times.quantile(at, "linear").round().cast(pl.Int64)


def quantile_of_counts(counts: Mapping[int, int], at: float) -> int:
    """Return the same of numbers that each occur `counts[number]` times; 0 if there is none."""
    place = (sum(counts.values()) - 1) * at
    num_below, lower = 0, None
    for number in sorted(counts):
        num_below += counts[number]
        if lower is None and place < num_below:
            lower = number
        if lower is not None and -(-place // 1) < num_below:
            return round(lower + (number - lower) * (place % 1))
    return 0
