"""The waterfall's bars: where each piece is, in nanoseconds and in cells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import click
import polars as pl
from hypothesis import assume, given
from hypothesis import strategies as st

from stepscope.analyzers.latency.blame import Blame
from stepscope.analyzers.latency.causes import BY_NAME, CAUSES, GROUPS, Cause
from stepscope.app.palette import OF_KINDS, STATES
from stepscope.app.present.blame_bars import LOOKS, Bars, Piece, by_group
from stepscope.app.present.blame_text import waterfall_lines
from tests.looped import looped
from tests.tiers import slow

parts = st.lists(st.tuples(st.sampled_from(CAUSES), st.integers(1, 10**12)), max_size=12)
requests = st.lists(st.tuples(st.integers(0, 10**12), parts), min_size=1, max_size=4)


def blamed(given: list[tuple[int, list[tuple[Cause, int]]]]) -> Blame:
    """Requests by their arrival and what they were in one after the other."""
    rows, intervals = [], []
    for number, (arrive_ns, spent) in enumerate(given):
        who = {"rank": 0, "request": f"r{number}"}
        length = sum(ns for _, ns in spent)
        took = {cause.column: 0 for cause in CAUSES}
        at = arrive_ns
        for cause, ns in spent:
            took[cause.column] += ns
            intervals.append(
                {**who, "from_ns": at, "to_ns": at + ns, "cause": cause.name, "ns": ns}
            )
            at += ns
        times = {"arrive_ns": arrive_ns, "ended_ns": at, "latency_ns": length}
        rows.append({**who, **times, **took})
    schema = dict.fromkeys(("rank", "from_ns", "to_ns", "ns"), pl.Int64)
    frame = pl.DataFrame(intervals, schema={**schema, "request": pl.String, "cause": pl.String})
    return Blame("t", pl.DataFrame(rows), pl.DataFrame(rows), frame, ())


def ends_of(rows: list[dict[str, Any]]) -> tuple[int, int]:
    """When the first of them came and the last ended."""
    return min(row["arrive_ns"] for row in rows), max(row["ended_ns"] for row in rows)


@given(requests)
def test_a_piece_of_a_bar_is_where_its_cause_was(
    given: list[tuple[int, list[tuple[Cause, int]]]],
) -> None:
    told = blamed(given)
    bars = Bars(told)

    for row, (_, spent) in zip(told.requests.to_dicts(), given, strict=True):
        at, where = 0, []
        for cause, ns in spent:
            where.append((cause.group, at, at + ns))
            at += ns
        drawn = [(each.group, each.start, each.start + each.length) for each in bars.pieces(row)]
        assert all(
            any(g == group and s <= start and end <= e for g, s, e in drawn)
            for group, start, end in where
        )
        assert sum(end - start for _, start, end in drawn) == row["latency_ns"]


@slow
@given(requests, st.integers(8, 140))
def test_cells_do_not_overlap_and_stay_on_the_scale(
    given: list[tuple[int, list[tuple[Cause, int]]]], width: int
) -> None:
    told = blamed(given)
    bars, rows = Bars(told), told.requests.to_dicts()
    first, last = ends_of(rows)
    for row in rows:
        drawn = bars.cells(row, first, last, width)
        assert bool(drawn) == (row["latency_ns"] > 0)
        at = 0
        for piece in drawn:
            assert piece.start >= at
            at = piece.start + piece.length
        assert at <= width


@given(requests, st.integers(8, 140))
def test_a_cell_shows_what_was_in_it_and_all_of_them_what_each_cause_took(
    given: list[tuple[int, list[tuple[Cause, int]]]], width: int
) -> None:
    told = blamed(given)
    bars, rows = Bars(told), told.requests.to_dicts()
    first, last = ends_of(rows)
    assume(last - first >= 100 * width)  # else a nanosecond is more than a cell
    for row in rows:
        began, pieces, num_cells = row["arrive_ns"] - first, bars.pieces(row), Counter[str]()
        for drawn in bars.cells(row, first, last, width):
            num_cells[drawn.group] += drawn.length
            for cell in range(drawn.start, drawn.start + drawn.length):
                since, until = (edge * (last - first) // width - began for edge in (cell, cell + 1))
                assert (
                    any(
                        each.group == drawn.group
                        and each.start < until
                        and since < each.start + each.length
                        for each in pieces
                    )
                    or sum(num_cells.values()) == 1
                )  # a request shorter than half a cell
        spent = by_group(row)
        for group, ns in spent.items():
            assert abs(num_cells[group] - ns * width / (last - first)) <= len(spent) + 1


def test_what_is_a_quarter_of_every_cell_has_every_fourth() -> None:
    waits, decodes = BY_NAME["no-seat"], BY_NAME["decode"]
    told = blamed([(0, [(decodes, 3), (waits, 1)] * 40)])

    drawn = Bars(told).cells(told.requests.row(0, named=True), 0, 160, 40)

    assert sum(each.length for each in drawn if each.group == "queue") == 10
    assert max(each.length for each in drawn) <= 4


def test_a_cell_shows_what_is_in_it_and_not_what_is_stacked_first() -> None:
    waits, decodes = BY_NAME["no-seat"], BY_NAME["decode"]
    told = blamed([(0, [(decodes, 40), (waits, 20), (decodes, 40)])])

    drawn = Bars(told).cells(told.requests.row(0, named=True), 0, 100, 10)

    assert drawn == [Piece("decode", 0, 4), Piece("queue", 4, 2), Piece("decode", 6, 4)]


@given(requests, st.integers(60, 160))
def test_a_line_of_a_waterfall_fits_its_width(
    given: list[tuple[int, list[tuple[Cause, int]]]], width: int
) -> None:
    told = blamed(given)
    lines = waterfall_lines(Bars(told), told.requests.to_dicts(), width, "all")

    assert all(len(click.unstyle(line)) <= width for line in lines)


def test_every_group_of_causes_has_a_glyph_of_its_own() -> None:
    assert list(LOOKS) == list(GROUPS)
    assert len({look.glyph for look in LOOKS.values()}) == len(GROUPS)


@looped("kind", OF_KINDS)
def test_what_a_gpu_was_in_has_the_colour_that_it_has_on_the_timeline(kind: str) -> None:
    assert LOOKS[kind].colour == STATES[OF_KINDS[kind]].colour
