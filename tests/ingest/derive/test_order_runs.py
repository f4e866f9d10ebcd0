"""Runs say of every place what going through all rows says."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.derive import order_runs
from stepscope.ingest.derive.order_runs import OrderRuns, Told, runs_of
from tests.tiers import slow

Row = tuple[int, int, int | None]
LAST = 20


@st.composite
def tables(draw: st.DrawFn) -> list[list[Row]]:
    """Rows of several tables: place, time, and step, each table in the order of its places."""
    row = st.tuples(st.integers(1, LAST), st.integers(0, 9), st.none() | st.integers(0, 4))
    return [sorted(draw(st.lists(row, max_size=8)), key=lambda each: each[0]) for _ in range(3)]


def told(table: list[Row]) -> Told:
    """The columns of a table, each in two pieces, as large ones are read in several."""
    halves = table[: len(table) // 2], table[len(table) // 2 :]
    return Told(
        *(
            pl.concat([pl.Series([row[at] for row in half], dtype=pl.Int64) for half in halves])
            for at in range(3)
        )
    )


def runs(rows: list[list[Row]]) -> OrderRuns:
    return runs_of([told(table) for table in rows])


@slow
@pytest.mark.parametrize("block_rows", [1, 3, 100])
@given(rows=tables())
def test_runs_say_what_going_through_all_rows_says(block_rows: int, rows: list[list[Row]]) -> None:
    every = [row for table in rows for row in table]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_runs, "BLOCK_ROWS", block_rows)
        found = runs(rows)
    places = sorted({seq for seq, _, _ in every})

    assert found.every().tolist() == places
    assert found.num_places == len(places)
    assert found.ends() == ((places[0], places[-1]) if places else None)
    for seq in range(LAST + 2):
        by_then = [row for row in every if row[0] <= seq]
        steps = [step for _, _, step in by_then if step is not None]
        assert found.after(seq) == min((each for each in places if each > seq), default=None)
        assert found.before(seq) == max((each for each in places if each < seq), default=None)
        assert found.step_of(seq) == max(steps, default=None)
        if by_then:
            assert found.times_of([seq]).tolist() == [max(ts_ns for _, ts_ns, _ in by_then)]


@slow
@given(tables())
def test_the_last_place_by_a_time_is_the_last_before_a_later_one(rows: list[list[Row]]) -> None:
    every = [row for table in rows for row in table]
    found = runs(rows)

    for ts_ns in range(-1, 11):
        later = min((seq for seq, time_ns, _ in every if time_ns > ts_ns), default=LAST + 1)
        expected = max((seq for seq, _, _ in every if seq < later), default=0)
        assert int(found.all_last_by(ts_ns, 0)) == expected
