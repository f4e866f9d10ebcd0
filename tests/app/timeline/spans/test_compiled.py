"""What one pass in C makes of spans is what NumPy makes of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline.lanes.lane import SPAN_COLUMNS
from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.packed import packed_parts
from stepscope.app.timeline.spans.span_columns import of_frame
from stepscope.app.timeline.spans.sublanes import in_sublanes

pytestmark = pytest.mark.skipif(not compiled.IS_COMPILED, reason="nothing was compiled here")

NUMBERS = st.lists(
    st.one_of(
        st.integers(0, 3), st.integers(-300, 70_000), st.integers(-(2**62), 2**62),
        st.sampled_from([2**8, 2**16, 2**24, 2**32, 2**48, 2**63 - 1, -(2**63)]),
    ),
    max_size=150,
)  # fmt: skip
SPANS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 25), st.integers(0, 12), st.integers(1, 4)),
    max_size=60,
)


def both(make: Callable[[], Any]) -> tuple[Any, Any]:
    """What is made in C, and by NumPy."""
    in_c = make()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "IS_COMPILED", False)
        return in_c, make()


def frame_of(spans: list[tuple[int, int, int, int]], scale: int = 1) -> pl.DataFrame:
    rows = [
        {"lane": lane, "start": start * scale, "end": (start + took) * scale, "state": state,
         "table": 0, "ref": row}
        for row, (lane, start, took, state) in enumerate(spans)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SPAN_COLUMNS)


@given(NUMBERS, st.sampled_from([1, 16, 64]), st.booleans())
def test_numbers_are_packed_into_the_same_bytes(
    numbers: list[int], per_block: int, from_least: bool
) -> None:
    array = np.array(numbers, np.int64)

    def packed() -> list[Any]:
        parts = packed_parts(array, per_block, from_least=from_least)
        return [[part.tolist() for part in each] for each in parts]

    in_c, by_numpy = both(packed)

    assert in_c == by_numpy


@given(SPANS, st.sampled_from([1, 2**27]))
def test_totals_before_each_block_are_the_same(
    spans: list[tuple[int, int, int, int]], scale: int
) -> None:
    ordered, num_sublanes = in_sublanes(frame_of(spans, scale), 4)

    def totals() -> list[Any]:
        columns = of_frame(ordered, int(num_sublanes.sum()))
        other = columns.in_states(columns.state[: len(ordered)] % 2)
        return [columns.totals.dtype, columns.totals.tolist(), other.totals.tolist()]

    in_c, by_numpy = both(totals)

    assert in_c == by_numpy


@given(SPANS)
def test_spans_that_overlap_go_to_the_same_sublanes(spans: list[tuple[int, int, int, int]]) -> None:
    def dealt_out() -> list[Any]:
        found, num_sublanes = in_sublanes(frame_of(spans), 4)
        return [found.rows(), num_sublanes.tolist()]

    in_c, by_numpy = both(dealt_out)

    assert in_c == by_numpy


def test_hundreds_that_run_at_once_have_a_sublane_each_and_leave_it_to_the_next() -> None:
    first = [(0, at, 1_000, 1) for at in range(300)]
    behind = [(0, 1_000 + at, 5_000, 1) for at in range(300)]

    def dealt_out() -> list[Any]:
        return list(in_sublanes(frame_of([*first, *behind, (1, 0, 5, 1)]), 2)[1])

    in_c, by_numpy = both(dealt_out)

    assert in_c == by_numpy == [300, 1]


def is_refused(call: Callable[[], object], words: str = "not") -> bool:
    """Whether a call raises a `ValueError` whose message has these words."""
    try:
        call()
    except ValueError as error:
        return words in str(error)
    return False


def test_arrays_that_do_not_go_together_are_an_error() -> None:
    base, width = np.zeros(2, np.int64), np.zeros(2, np.uint8)
    wrong = ((0, 256), (-1, 256), (65, 256), (8, 256), (16, 255), (16, 0))

    def packed(per_block: int, room: int) -> object:
        rows = np.zeros(room, np.uint8)
        return compiled.passes.pack(np.arange(32), per_block, False, base, width, rows)

    assert [each for each in wrong if not is_refused(partial(packed, *each))] == []


def test_lengths_that_are_not_among_the_rows_are_an_error() -> None:
    wrong = ((0, 9, 9), (0, 2, 1), (0, 1, 3))

    def added_up(*first: int) -> None:
        compiled.passes.add_up(
            np.array(first, np.uint32), np.zeros(2, np.int64), np.zeros((2, 16), np.uint8), 16,
            np.zeros(32, np.uint8), np.zeros(256, np.uint8), 32, np.zeros(1, np.uint64),
            np.zeros((2, 1), np.uint32),
        )  # fmt: skip

    words = "not among the rows"
    assert [first for first in wrong if not is_refused(partial(added_up, *first), words)] == []


def test_lanes_and_rows_that_there_are_not_are_an_error() -> None:
    wrong = (((0, 2), 2), ((0, 1), 3))

    def arranged(lanes: tuple[int, int], room: int) -> object:
        order, sublane = np.zeros(2, np.uint32), np.zeros(room, np.uint32)
        return compiled.passes.arrange(
            np.array(lanes, np.uint32), np.array([5, 3]), np.array([6, 4]), order, sublane,
            np.zeros(2, int),
        )  # fmt: skip

    assert [each for each in wrong if not is_refused(partial(arranged, *each))] == []


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40)), max_size=200))
def test_long_lanes_in_any_order_are_sorted_the_same(starts: list[tuple[int, int]]) -> None:
    def dealt_out() -> list[Any]:
        found, num_sublanes = in_sublanes(frame_of([(*each, 3, 1) for each in starts]), 2)
        return [found.rows(), num_sublanes.tolist()]

    in_c, by_numpy = both(dealt_out)

    assert in_c == by_numpy


def painted(**changed: Any) -> list[int]:
    """The states that two spans of a lane show in three pixels, with some arguments changed."""
    columns = of_frame(frame_of([(0, 0, 4, 1), (0, 5, 2, 2)]), 1)
    starts, lengths, shape = columns.starts, columns.lengths, (1, 3)
    given: dict[str, Any] = {
        "start_first": starts.first, "start_base": starts.base, "start_rows": starts.rows,
        "length_first": lengths.first, "length_base": lengths.base, "length_rows": lengths.rows,
        "state": columns.state, "kinds": columns.kinds, "totals": columns.totals,
        "offsets": columns.offsets, "lanes": np.array([0]), "edges": np.array([0, 4, 5, 9]),
        "hidden": np.zeros(256, np.uint8), "shown": np.zeros(shape, np.uint8),
        "density": np.zeros(shape, np.uint8), "count": np.zeros(shape, np.uint32),
        "num_spans": 2, "per_block": 16,
    }  # fmt: skip
    given |= changed
    compiled.pictures.paint(*given.values())
    states: list[int] = given["shown"][0].tolist()
    return states


def test_a_picture_of_arrays_that_go_together_is_painted() -> None:
    assert painted() == [1, 0, 2]


def test_what_is_damaged_is_an_error_and_is_not_read() -> None:
    damaged: tuple[dict[str, Any], ...] = (
        {"lanes": np.array([1])}, {"lanes": np.array([-1])}, {"offsets": np.array([0, 3])},
        {"offsets": np.array([2, 1])}, {"offsets": np.array([-1, 2])},
        {"start_first": np.array([0, 9], np.uint32)}, {"length_first": np.array([1, 0], np.uint32)},
        {"start_rows": np.zeros((0, 16), np.uint8)}, {"num_spans": 17}, {"num_spans": -1},
        {"per_block": 0}, {"per_block": 65}, {"edges": np.array([0])},
        {"count": np.zeros((1, 2), np.uint32)}, {"hidden": np.zeros(3, np.uint8)},
        {"totals": np.zeros((3, 2), np.uint32)}, {"state": np.zeros(2, np.uint8)},
    )  # fmt: skip

    assert [changed for changed in damaged if not is_refused(partial(painted, **changed))] == []


def test_a_state_that_is_not_among_the_kinds_is_nowhere() -> None:
    shown = {state: painted(state=np.full(16, state, np.uint8))[1] for state in (0, 7, 255)}

    assert shown == dict.fromkeys(shown, 0)
