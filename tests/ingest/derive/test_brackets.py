"""Begins and ends matched all at once, as one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.brackets import NO_END, brackets
from stepscope.ingest.derive.pairs import pair


@given(st.lists(st.tuples(st.integers(-2, 2), st.booleans()), max_size=30))
def test_ends_belong_to_the_latest_open_begin_of_their_key(halves: list[tuple[int, bool]]) -> None:
    ends, lost = pair((row, str(key), None, begins) for row, (key, begins) in enumerate(halves))

    key = np.array([key for key, _ in halves], np.int64)
    found, is_lost = brackets(key, np.array([begins for _, begins in halves], np.bool_))

    assert found.tolist() == [ends.get(row, NO_END) for row in range(len(halves))]
    assert np.flatnonzero(is_lost).tolist() == lost
