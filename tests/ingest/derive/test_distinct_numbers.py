"""Numbers once each, and where others stand among them, whether they have gaps or not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.distinct_numbers import Among, distinct, order_of

NEAR = st.integers(-20, 20)
FAR = st.integers(-(2**62), 2**62)
PARTS = st.one_of(
    *(st.lists(st.lists(each, max_size=20), min_size=1, max_size=3) for each in (NEAR, FAR))
)


@given(PARTS)
def test_every_number_is_given_once_sorted(parts: list[list[int]]) -> None:
    known = distinct([np.array(part, np.int64) for part in parts])

    assert known.tolist() == sorted({number for part in parts for number in part})


@given(PARTS, st.lists(st.one_of(NEAR, FAR), max_size=20))
def test_a_number_that_is_not_known_has_no_place(parts: list[list[int]], wanted: list[int]) -> None:
    known = distinct([np.array(part, np.int64) for part in parts])
    numbers = known.tolist()

    places = Among(known, len(wanted)).places(np.array(wanted, np.int64)).tolist()

    assert places == [numbers.index(each) if each in numbers else -1 for each in wanted]


@pytest.mark.parametrize("num", [0, 1])
def test_nothing_stands_nowhere(num: int) -> None:
    assert Among(np.empty(0, np.int64), num).places(np.zeros(num, np.int64)).tolist() == [-1] * num


@given(st.lists(st.one_of(NEAR, FAR), max_size=40))
def test_numbers_are_ordered_and_equal_ones_stay_as_they_came(numbers: list[int]) -> None:
    expected = sorted(range(len(numbers)), key=numbers.__getitem__)
    assert order_of(np.array(numbers, np.int64)).tolist() == expected
