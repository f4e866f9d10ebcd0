"""Times of several tracks on one axis."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive.axis import NONE, Axis, latest, numbered

ROWS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(-9, 9) | st.sampled_from([-(1 << 62), (1 << 62) - 1])),
    max_size=12,
)
Columns = tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]


def columns(rows: list[tuple[int, int]]) -> Columns:
    found = np.array(rows, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


@given(ROWS)
def test_on_one_axis_times_keep_their_order_and_tracks_follow_each_other(
    rows: list[tuple[int, int]],
) -> None:
    track, ts_ns = columns(rows)

    places = Axis.of([track], [ts_ns]).at(track, ts_ns).tolist()

    for place, row in zip(places, rows, strict=True):
        for other_place, other in zip(places, rows, strict=True):
            assert (place < other_place) == (row < other)


@given(ROWS, ROWS)
def test_the_latest_is_the_last_that_began_by_then_on_the_track(
    rows: list[tuple[int, int]], begun: list[tuple[int, int]]
) -> None:
    found = latest(*columns(rows), *columns(begun))

    for (track, ts_ns), place in zip(rows, found.tolist(), strict=True):
        before = [(at, n) for n, (on, at) in enumerate(begun) if on == track and at <= ts_ns]
        assert place == (max(before)[1] if before else NONE)


def test_an_enum_keeps_its_numbers() -> None:
    known, number = numbered(pl.Series(["b", "b"], dtype=pl.Enum(["a", "b"])))

    assert known.to_list() == ["a", "b"]
    assert number.tolist() == [1, 1]


def test_other_texts_are_numbered_as_they_come() -> None:
    known, number = numbered(pl.Series(["b", "a", "b"]))

    assert known.to_list() == ["b", "a"]
    assert number.tolist() == [0, 1, 0]
