"""The map of times: it rises, is exact at its anchors, and is undone where B goes as fast as A."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.paired.time_map import TimeMap

TIMES = st.integers(-(2**50), 2**60)
ANCHORS = st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=12)
GAPS = st.lists(st.tuples(st.integers(1, 10**12), st.integers(1, 10**12)), max_size=10)


def through(first: tuple[int, int], gaps: list[tuple[int, int]]) -> TimeMap:
    anchors = [first]
    for a, b in gaps:
        anchors.append((anchors[-1][0] + a, anchors[-1][1] + b))
    return TimeMap.through(anchors)


@given(ANCHORS, st.lists(TIMES, min_size=2, max_size=30))
def test_a_later_time_never_lies_on_an_earlier_one(
    anchors: list[tuple[int, int]], times: list[int]
) -> None:
    found = TimeMap.through(anchors)
    ordered = np.array(sorted(times), np.int64)

    assert (np.diff(found.to_b(ordered)) >= 0).all()
    assert (np.diff(found.to_a(ordered)) >= 0).all()


@given(st.tuples(TIMES, TIMES), GAPS)
def test_each_anchor_lies_on_its_partner(
    first: tuple[int, int], gaps: list[tuple[int, int]]
) -> None:
    found = through(first, gaps)

    assert found.to_b(found.a).tolist() == found.b.tolist()
    assert len(found.a) == len(gaps) + 1
    assert found.b_at(first[0] - 7) == first[1] - 7


@given(st.tuples(TIMES, TIMES), GAPS, st.integers(-(10**12), 10**13))
def test_the_way_back_is_the_first_time_at_which_b_has_come_as_far(
    first: tuple[int, int], gaps: list[tuple[int, int]], since: int
) -> None:
    found = through(first, gaps)
    there = first[1] + since
    back = found.a_at(there)

    assert found.b_at(back) >= there
    assert found.b_at(back - 1) < there


@given(st.tuples(TIMES, TIMES), TIMES)
def test_where_both_go_as_fast_the_way_back_is_exact(first: tuple[int, int], at: int) -> None:
    found = TimeMap.through([first])

    assert found.a_at(found.b_at(at)) == at


def test_an_anchor_that_would_go_backwards_is_left_out() -> None:
    found = TimeMap.through([(0, 100), (10, 90), (20, 130), (20, 140)])

    assert (found.a.tolist(), found.b.tolist()) == ([0, 20], [100, 130])
