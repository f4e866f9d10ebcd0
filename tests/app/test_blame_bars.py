"""The waterfall's bars: where each piece is, in nanoseconds and in cells."""

from __future__ import annotations

from typing import Any

import click
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.causes import CAUSES, GROUPS
from stepscope.app.blame_bars import LOOKS, cells, pieces
from stepscope.app.blame_text import waterfall_lines

spent = st.fixed_dictionaries({cause.column: st.integers(0, 10**12) for cause in CAUSES})
rows = st.tuples(spent, st.integers(0, 10**12)).map(lambda drawn: _row(*drawn))


def _row(of_causes: dict[str, int], arrive_ns: int) -> dict[str, Any]:
    latency = sum(of_causes.values())
    return {
        **of_causes, "arrive_ns": arrive_ns, "latency_ns": latency, "rank": 0, "request": "r",
        "ended_ns": arrive_ns + latency,
    }  # fmt: skip


@given(rows)
def test_pieces_of_a_bar_follow_each_other_and_add_up(row: dict[str, Any]) -> None:
    at = 0
    for piece in pieces(row):
        assert piece.start == at
        at += piece.length
    assert at == row["latency_ns"]


@given(st.lists(rows, min_size=1, max_size=4), st.integers(8, 140))
def test_cells_do_not_overlap_and_stay_on_the_scale(
    several: list[dict[str, Any]], width: int
) -> None:
    first = min(row["arrive_ns"] for row in several)
    last = max(row["ended_ns"] for row in several)
    for row in several:
        drawn = cells(row, first, last, width)
        assert bool(drawn) == (row["latency_ns"] > 0)
        at = 0
        for piece in drawn:
            assert piece.start >= at
            at = piece.start + piece.length
        assert at <= width


@given(st.lists(rows, min_size=1, max_size=4), st.integers(60, 160))
def test_a_line_of_a_waterfall_fits_its_width(several: list[dict[str, Any]], width: int) -> None:
    assert all(len(click.unstyle(line)) <= width for line in waterfall_lines(several, width, "all"))


def test_every_group_of_causes_has_a_glyph_of_its_own() -> None:
    assert list(LOOKS) == list(GROUPS)
    assert len({look.glyph for look in LOOKS.values()}) == len(GROUPS)
