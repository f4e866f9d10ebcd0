"""The union of intervals, against one that is told moment by moment."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.views.interval_union import SPAN, covered, joined, merged

MOMENTS = range(12)
Span = tuple[int, int, int]
spans = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 11), st.integers(0, 11)).map(
        lambda each: (each[0], min(each[1:]), max(each[1:]))
    ),
    max_size=8,
)


def frame(rows: list[Span]) -> pl.LazyFrame:
    return pl.LazyFrame(rows, schema=SPAN, orient="row")


def one_by_one(rows: list[Span]) -> list[Span]:
    """Join a span to the last one of its rank if it touches that."""
    union: list[Span] = []
    for rank, from_ns, to_ns in sorted(rows):
        last = union[-1] if union else (-1, 0, 0)
        if last[0] == rank and from_ns <= last[2]:
            union[-1] = (rank, last[1], max(last[2], to_ns))
        else:
            union.append((rank, from_ns, to_ns))
    return union


@given(spans)
def test_what_touches_or_overlaps_is_one(rows: list[Span]) -> None:
    assert sorted(joined(frame(rows)).collect().rows()) == one_by_one(rows)


@given(spans)
def test_what_is_covered_is_the_moments_that_any_span_has(rows: list[Span]) -> None:
    asked = frame([(0, first, last) for first in MOMENTS for last in MOMENTS if first <= last])

    told = covered(asked, merged(frame(rows)), "ns").collect()

    had = {at for rank, from_ns, to_ns in rows if rank == 0 for at in range(from_ns, to_ns)}
    for _, from_ns, to_ns, ns in told.select(*SPAN, "ns").iter_rows():
        assert ns == len(had & set(range(from_ns, to_ns)))


def test_a_span_of_no_length_adds_nothing_and_one_that_ends_before_it_begins_neither() -> None:
    union = merged(frame([(0, 1, 3), (0, 5, 5), (0, 9, 7), (0, 6, 8)])).collect()

    assert union.rows() == [(0, 1, 3, 0), (0, 6, 8, 2)]


def test_a_union_is_told_apart_by_any_columns_null_among_them() -> None:
    rows = {"unit": [None, 1, None, 1], "from_ns": [0, 1, 2, 8], "to_ns": [2, 4, 5, 9]}

    union = joined(pl.LazyFrame(rows), ["unit"]).collect()

    assert sorted(union.rows(), key=str) == [(1, 1, 4), (1, 8, 9), (None, 0, 5)]
