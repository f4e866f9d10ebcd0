"""A histogram holds every value once, in parts of one length."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.summary.distribution import MOST_PARTS, distribution


def test_of_nothing_there_is_no_distribution() -> None:
    assert distribution(pl.Series([None, None], dtype=pl.Int64)) is None


def test_one_value_has_one_part_that_holds_it() -> None:
    found = distribution(pl.Series([7, 7, None]))

    assert found is not None
    assert (found.num, found.counts.tolist(), found.edges.tolist()) == (2, [2], [7, 8])


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1))
def test_every_value_is_in_the_part_whose_edges_it_lies_between(values: list[int]) -> None:
    found = distribution(pl.Series(values))

    assert found is not None
    assert len(found.counts) <= MOST_PARTS
    assert len(set(np.diff(found.edges).tolist())) == 1
    counted = [
        sum(low <= value < high for value in values)
        for low, high in zip(found.edges.tolist(), found.edges.tolist()[1:], strict=False)
    ]
    assert found.counts.tolist() == counted
    assert found.quantiles_ns["max"] == max(values)
