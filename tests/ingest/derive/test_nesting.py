"""Slices of several tracks at once: what is around each, and its lane."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive import nesting
from stepscope.ingest.derive.axis import NONE, Ints
from stepscope.ingest.derive.nesting import NUM_NESTING_LANES, nested
from tests.tiers import slow

NUM_TRACKS = 3


def one_by_one(track: Ints, start: Ints, end: Ints) -> list[tuple[int, int]]:
    """The slice around each slice and its lane, with the open slices of every lane on a stack."""
    found = dict.fromkeys(range(len(track)), (NONE, NUM_NESTING_LANES))
    opened: dict[tuple[int, int], list[int]] = {}
    for row in sorted(found, key=lambda row: (track[row], start[row], -end[row])):
        for lane in range(NUM_NESTING_LANES):
            stack = opened.setdefault((int(track[row]), lane), [])
            while stack and end[stack[-1]] <= start[row]:
                stack.pop()
            if not stack or end[stack[-1]] >= end[row]:
                found[row] = stack[-1] if stack else NONE, lane
                stack.append(row)
                break
    return [found[row] for row in range(len(track))]


@slow
@pytest.mark.parametrize(("few", "most_steps"), [(64, 16), (0, 16), (0, 1), (0, 0)])
@given(
    seed=st.integers(0, 1 << 32),
    num=st.integers(0, 300),
    last=st.integers(0, 2000),
    octaves=st.integers(0, 9),
    unit=st.sampled_from([1, 1 << 51]),
)
def test_every_slice_gets_the_first_lane_in_which_it_nests(
    few: int, most_steps: int, seed: int, num: int, last: int, octaves: int, unit: int
) -> None:
    random = np.random.default_rng(seed)
    track = random.integers(0, NUM_TRACKS, num)
    start = random.integers(-last, last + 1, num) * unit
    end = start + np.exp2(random.uniform(0, octaves, num)).astype(np.int64) * unit

    with mock.patch.multiple(nesting, _FEW=few, _MOST_STEPS=most_steps):
        around, lane = nested(track, start, end, np.full(num, fill_value=True))

    lanes = np.minimum(lane, NUM_NESTING_LANES).tolist()
    assert list(zip(around.tolist(), lanes, strict=True)) == one_by_one(track, start, end)


def test_rows_that_are_no_slices_have_nothing_around_them() -> None:
    zeros = np.zeros(4, np.int64)

    around, lane = nested(zeros, zeros, zeros + 9, is_slice=np.array([False, True, False, True]))

    assert around.tolist() == [NONE, NONE, NONE, 1]
    assert lane.tolist() == [0, 0, 0, 0]


def test_a_slice_that_crosses_and_lasts_does_not_take_the_others_along() -> None:
    start = np.array([0, 5, 6, 7, 20, 30])
    end = np.array([10, 90, 9, 8, 25, 95])

    around, lane = nested(np.zeros(6, np.int64), start, end, start >= 0)

    assert around.tolist() == [NONE, NONE, 0, 2, NONE, NONE]
    assert lane.tolist() == [0, 1, 0, 0, 0, 0]
