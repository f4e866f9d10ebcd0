"""A strip of cells is what Textual's own of the same text is, to Textual and to a terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.color import BLACK
from textual.filter import LineFilter, Monochrome
from textual.strip import Strip

from stepscope.app.tui.cell_strip import CellStrip
from stepscope.app.tui.ink import BACKGROUND, TEXT, ink
from stepscope.app.tui.light_ground import LightGround

STYLES = (
    ink(TEXT, BACKGROUND), ink("#46C3FE", BACKGROUND), ink("#46C3FE", "#102030"), ink(TEXT, None),
    ink(TEXT, BACKGROUND, bold=True), Style(underline=True, bold=True), Style(), Style(bold=False),
    Style(color="red", bgcolor="default"),
)  # fmt: skip
CELLS = st.lists(st.tuples(st.sampled_from("ab ▓┄◆"), st.sampled_from(STYLES)), max_size=24)
EDGE = st.integers(-3, 30)
Cell = tuple[str, Style]


def both(cells: Sequence[Cell]) -> tuple[CellStrip, Strip]:
    """The same cells as a strip of ours and as one of Textual's."""
    text, styles = "".join(glyph for glyph, _ in cells), [style for _, style in cells]
    return CellStrip(text, styles), Strip([Segment(*cell) for cell in cells], len(cells))


def cells_of(strip: Strip) -> list[Cell]:
    """Each cell and its style."""
    return [(glyph, style or Style()) for text, style, _ in strip for glyph in text]


def on_screen(told: str) -> list[tuple[str, frozenset[str]]]:
    """What a terminal shows that is told this: each cell, and what its look is made of."""
    cells: list[tuple[str, frozenset[str]]] = []
    looks: dict[str, str] = {}
    for codes, text in re.findall(r"(?:\x1b\[([\d;]*)m)?([^\x1b]*)", told):
        parts = re.findall(r"([34]8;2;\d+;\d+;\d+|\d+)", codes)
        for part in parts:
            if part == "0":
                looks = {}
            else:
                is_text, is_ground = re.match(r"3\d|9\d", part), re.match(r"4\d|10\d", part)
                looks["text" if is_text else "ground" if is_ground else part] = part
        shown = {kind: look for kind, look in looks.items() if look not in ("39", "49")}
        cells += [(glyph, frozenset(shown.values())) for glyph in text]
    return cells


@given(CELLS)
def test_its_segments_are_the_text_in_its_styles(cells: list[Cell]) -> None:
    ours, textuals = both(cells)

    assert cells_of(ours) == cells_of(textuals)
    assert ours.cell_length == textuals.cell_length == len(cells)
    assert ours.text == textuals.text


@given(CELLS)
def test_a_terminal_shows_what_it_would_show_of_textuals_own(cells: list[Cell]) -> None:
    ours, textuals = both(cells)
    console = Console(color_system="truecolor")

    told = ours.render(console)

    assert on_screen(told) == on_screen(textuals.render(console))
    assert not told or told.endswith("\x1b[0m")


@given(CELLS, EDGE, st.none() | EDGE)
def test_it_is_cropped_as_textuals_own_is(cells: list[Cell], start: int, end: int | None) -> None:
    ours, textuals = both(cells)

    assert cells_of(ours.crop(start, end)) == cells_of(textuals.crop(start, end))
    assert ours.crop(start, end).cell_length == textuals.crop(start, end).cell_length


@given(CELLS, st.lists(st.integers(1, 26), max_size=4, unique=True).map(sorted))
def test_it_is_divided_as_textuals_own_is(cells: list[Cell], cuts: list[int]) -> None:
    ours, textuals = both(cells)

    parts = [cells_of(part) for part in ours.divide(cuts)]

    assert parts == [cells_of(part) for part in textuals.divide(cuts)]


@given(CELLS, st.integers(0, 40))
def test_it_is_extended_as_textuals_own_is(cells: list[Cell], width: int) -> None:
    ours, textuals = both(cells)

    extended = ours.extend_cell_length(width, STYLES[1])

    assert cells_of(extended) == cells_of(textuals.extend_cell_length(width, STYLES[1]))


@pytest.mark.parametrize("filter_", [LightGround(), Monochrome()], ids=["styles", "segments"])
@given(cells=CELLS)
def test_a_filter_makes_of_it_what_it_makes_of_textuals_own(
    filter_: LineFilter, cells: list[Cell]
) -> None:
    ours, textuals = both(cells)

    filtered = ours.apply_filter(filter_, BLACK)

    assert cells_of(filtered) == cells_of(textuals.apply_filter(filter_, BLACK))


def test_from_one_style_to_the_next_only_what_changes_is_told() -> None:
    ours, _ = both([("a", STYLES[0]), ("b", STYLES[1]), ("c", STYLES[4])])

    first, second, third = re.findall(r"\x1b\[([\d;]+)m[abc]", ours.render(Console()))

    assert first.count("8;2;") == 2
    assert second == "38;2;70;195;254"
    assert third.startswith("0;1;")
