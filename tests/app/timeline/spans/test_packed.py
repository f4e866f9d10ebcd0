"""Numbers that are packed are there again, whichever are asked for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline.spans.packed import Packed, packed_parts

NUMBERS = st.lists(
    st.one_of(
        st.integers(0, 3), st.integers(-300, 70_000), st.integers(-(2**62), 2**62),
        st.sampled_from([2**8, 2**16, 2**24, 2**32, 2**48, 2**63 - 1, -(2**63)]),
    ),
    max_size=90,
)  # fmt: skip


def packed(numbers: list[int], per_block: int, *, from_least: bool) -> Packed:
    parts = [*packed_parts(np.array(numbers, np.int64), per_block, from_least=from_least)]
    base = np.concatenate([np.zeros(0, np.int64), *(base for base, _, _ in parts)])
    width = np.concatenate([np.zeros(0, np.int64), *(width for _, width, _ in parts)])
    rows = np.concatenate([np.zeros((0, per_block), np.uint8), *(rows for _, _, rows in parts)])
    first = np.concatenate(([0], np.cumsum(width))).astype(np.uint32)
    return Packed(len(numbers), base, first, rows)


@given(NUMBERS, st.sampled_from([4, 16]), st.booleans(), st.data())
def test_any_numbers_are_as_they_were_at_any_places(
    numbers: list[int], per_block: int, from_least: bool, data: st.DataObject
) -> None:
    held = packed(numbers, per_block, from_least=from_least)
    array = np.array(numbers, np.int64)
    cut = data.draw(st.slices(len(numbers)))

    assert len(held) == len(numbers)
    assert held[:].tolist() == numbers
    assert held[cut].tolist() == array[cut].tolist()
    if numbers:
        places = np.array(data.draw(st.lists(st.integers(0, len(numbers) - 1), max_size=20)), int)
        assert held[places].tolist() == array[places].tolist()
        at = data.draw(st.integers(-len(numbers), len(numbers) - 1))
        assert held[at] == numbers[at]
        blocks = held.blocks(np.arange(len(held.base)))
        assert blocks.ravel()[: len(numbers)].tolist() == numbers


@given(NUMBERS, st.sampled_from([4, 16]), st.data())
def test_the_numbers_of_ranges_are_those_of_slices_one_behind_the_other(
    numbers: list[int], per_block: int, data: st.DataObject
) -> None:
    held = packed(numbers, per_block, from_least=True)
    place = st.integers(0, len(numbers))
    ranges = [sorted(each) for each in data.draw(st.lists(st.tuples(place, place), max_size=9))]
    low, high = np.array(ranges, np.int64).reshape(-1, 2).T

    found = held.stretches(low, high)

    assert found.tolist() == [each for begin, end in ranges for each in numbers[begin:end]]


def test_numbers_that_are_close_together_take_a_byte_each() -> None:
    numbers = (np.arange(16_000) * 7 + 10**18).tolist()

    held = packed(numbers, 16, from_least=True)

    assert held.rows.nbytes == len(numbers)


@pytest.mark.parametrize("wrong", [-4, 3])
def test_a_number_that_is_not_there_is_an_error(wrong: int) -> None:
    with pytest.raises(IndexError):
        packed([1, 2, 3], 16, from_least=True)[wrong]


def test_blocks_that_are_as_wide_above_zero_have_no_base() -> None:
    numbers = [200, *range(1_000, 1_015), *range(1_000, 1_016)]

    held = packed(numbers, 16, from_least=True)

    assert held.base.tolist() == [0, 1_000]
    assert held.rows.nbytes == 16 * 2 + 16
    assert held[:].tolist() == numbers
