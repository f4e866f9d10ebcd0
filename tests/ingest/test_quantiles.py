"""A quantile is the one that NumPy gives by default."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.quantiles import quantile_expr, quantile_of, quantile_of_counts

VALUES = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=30)
SHARES = st.sampled_from([0.0, 0.25, 0.5, 0.9, 0.99, 1.0])


@given(VALUES, SHARES)
def test_a_quantile_is_that_of_numpy_whichever_form_the_values_have(
    values: list[int], at: float
) -> None:
    quantile = np.quantile(values, at)

    series = quantile_of(pl.Series(values, dtype=pl.Int64), at)
    column = pl.DataFrame({"times": values}).select(quantile_expr(pl.col("times"), at)).item()
    counted = quantile_of_counts(Counter(values), at)

    for found in (series, column, counted):
        assert found is not None
        assert abs(found - quantile) <= 1


def test_the_median_of_an_even_number_of_values_is_the_mean_of_the_middle_two() -> None:
    assert quantile_of(pl.Series([10, 20, 40, 80]), 0.5) == 30
    assert quantile_of_counts({10: 1, 20: 1, 40: 2}, 0.5) == 30


def test_no_values_have_no_quantile() -> None:
    empty = pl.Series([], dtype=pl.Int64)

    assert quantile_of(empty, 0.5) is None
    assert empty.to_frame("times").select(quantile_expr(pl.col("times"), 0.5)).item() is None
    assert quantile_of_counts({}, 0.5) == 0
