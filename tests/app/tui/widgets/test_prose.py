"""What a pane of text shows after other text is exactly what it shows in a new pane."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.style import Style
from textual.app import App, ComposeResult

from stepscope.app.present.blocks import Fact, Heading, Paragraph
from stepscope.app.tui.cells import Line, strip_of
from stepscope.app.tui.widgets.prose import Prose, Shown, lay_out
from tests.tiers import examples, slow

WIDTH, HEIGHT = 40, 8
TEXTS = st.text("ab ", min_size=1, max_size=60)
BLOCKS = st.one_of(
    TEXTS.map(Paragraph),
    TEXTS.map(Heading),
    st.builds(Fact, TEXTS, st.lists(TEXTS, min_size=1, max_size=3).map(tuple)),
)
SHOWN = st.lists(BLOCKS, max_size=12)
"""From nothing to several times what fits."""


class OnePane(App[None]):
    """A pane that takes the whole screen."""

    CSS = "Prose { height: 1fr; }"
    ENABLE_COMMAND_PALETTE: ClassVar = False

    def compose(self) -> ComposeResult:
        """Lay out the pane."""
        yield Prose()


async def screens(shown: list[list[Shown]], lines: int) -> list[list[str]]:
    """The lines after each of the texts was shown in one pane, and how far its bar goes."""
    app, told = OnePane(), []
    async with app.run_test(size=(WIDTH, HEIGHT)) as pilot:
        pane = app.query_one(Prose)
        for each in shown:
            pane.show(each, keep_place=True)
            pane.scroll_relative(y=lines, animate=False)
            await pilot.pause()
            strips = app.screen._compositor.render_strips()
            lines_of_text = [repr(list(strip.crop(0, pane.room))) for strip in strips]
            bar = pane.vertical_scrollbar.window_virtual_size if pane.show_vertical_scrollbar else 0
            told.append([*lines_of_text, f"{bar} {pane.max_scroll_y}"])
    return told


@slow
@given(st.lists(SHOWN, min_size=2, max_size=5))
@settings(max_examples=examples(30), deadline=None)
def test_a_pane_that_showed_other_text_looks_like_a_new_one(shown: list[list[Shown]]) -> None:
    one_by_one = asyncio.run(screens(shown, 0))

    for each, screen in zip(shown, one_by_one, strict=True):
        assert screen == asyncio.run(screens([each], 0))[0]


def test_what_is_left_out_of_sight_by_less_text_is_scrolled_back_to() -> None:
    many: list[Shown] = [Paragraph(f"line {at}") for at in range(30)]
    few: list[Shown] = [Paragraph("one"), Paragraph("two")]

    _, after = asyncio.run(screens([many, few], 20))

    assert "one" in after[0]
    assert "two" in after[1]
    assert not any("line" in each for each in after)


@slow
@given(st.lists(st.tuples(st.text("ab│語e\u0301\x07", max_size=6), st.integers(0, 2))))
def test_a_line_of_runs_is_what_painting_them_one_by_one_is(runs: list[tuple[str, int]]) -> None:
    styles = [Style(bold=True), Style(italic=True), Style(color="#ffffff")]
    line, x = Line(12, styles[0]), 0
    for text, style in runs:
        x = line.put(x, text, styles[style])

    assert strip_of(((text, styles[style]) for text, style in runs), 12, styles[0]) == line.strip()


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (80, ["requests waiting 3", "time             1 s"]),
        (30, ["requests      3", "waiting", "time          1 s"]),
    ],
)
def test_names_of_facts_are_broken_only_where_a_pane_is_narrow(
    width: int, lines: list[str]
) -> None:
    told = lay_out([Fact("requests waiting", ("3",)), Fact("time", ("1 s",))], width)

    assert ["".join(piece.text for piece in line).rstrip() for line in told] == lines


def test_a_name_of_a_fact_that_is_longer_than_any_column_is_broken() -> None:
    told = lay_out([Fact("a name of forty cells that goes on and on", ("3",))], 200)

    assert len(told) == 3
    assert "".join(piece.text for piece in told[0]).rstrip() == "a name of forty 3"


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (60, ["MIX 0         held for ADD → held for MATMUL"]),
        (30, ["MIX 0         held for ADD", "              → held for", "              MATMUL"]),
    ],
)
def test_two_values_are_told_one_after_the_other_and_below_it_where_they_do_not_fit(
    width: int, lines: list[str]
) -> None:
    told = lay_out([Fact("MIX 0", ("held for ADD", "held for MATMUL"))], width)

    assert ["".join(piece.text for piece in line).rstrip() for line in told] == lines
