"""On a light ground all is drawn in the colours of one, and as it was when one goes back."""

from __future__ import annotations

import re

import pytest
from rich.style import Style

from stepscope.app import light, palette
from stepscope.app.timeline import SpanView, Viewport
from stepscope.app.tui import theme
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import blend, ink, readable_on
from stepscope.app.tui.light_ground import in_light
from stepscope.app.tui.plot.span_bars import Plot, paint_spans
from tests.app.tui.stage import RESULT, WIDE, conflict_trace, press, settle
from tests.tiers import slow

PAGES = "123456"
DARK_SURFACES = {palette.BACKGROUND, palette.PANEL, palette.RAISED, palette.BORDER}


def colours_of(picture: str) -> set[str]:
    """The colours of a picture of the terminal, but for the window around it."""
    inside = picture.partition('<g transform="translate')[2]
    return {each.upper() for each in re.findall(r"#[0-9a-fA-F]{6}", inside)}


@slow
async def test_every_page_is_drawn_on_a_light_ground_and_as_it_was_behind_it() -> None:
    app = StepscopeApp(conflict_trace(), RESULT)
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        for page in PAGES:
            await press(pilot, page)
            before = app.export_screenshot()
            await press(pilot, "T")
            bright = app.export_screenshot()
            await press(pilot, "T")

            assert app.export_screenshot() == before
            assert not colours_of(bright) & DARK_SURFACES, page
            assert bright != before


def contrast_of(style: Style) -> float:
    """The contrast of text with what is behind it."""
    assert style.color is not None
    assert style.bgcolor is not None
    text, ground = (each.get_truecolor().hex for each in (style.color, style.bgcolor))
    return light.contrast(text, ground)


def test_text_on_the_colour_of_any_state_can_be_read() -> None:
    unreadable = {}
    for state in palette.STATES:
        for body in (state.colour, blend(state.colour, palette.PANEL, 0.6)):
            shown = in_light(ink(readable_on(body), body, bold=True))
            if contrast_of(shown) < 4.5 or not shown.bold:
                unreadable[state.name, body] = str(shown)
    assert unreadable == {}


def test_where_a_bar_begins_within_a_cell_the_ground_shows_beside_it() -> None:
    line = Line(12, ink(palette.TEXT, palette.BACKGROUND))
    bars = [
        SpanView(0, start, end, palette.MIX, "", ("core_spans", 0))
        for start, end in ((150, 400), (400, 700))
    ]
    paint_spans(line, Plot(0, 12, Viewport(0, 1_200)), bars, (), palette.BACKGROUND)

    before, between, after = (in_light(line.style(x)) for x in (1, 4, 7))

    ground = light.colour(palette.BACKGROUND, is_light=True)
    assert (line.glyph(1), line.glyph(4)) == ("▌", "▏")
    for edge in (before, between):
        assert edge.color is not None
        assert edge.color.get_truecolor().hex.upper() == ground
    assert after.bgcolor is not None
    assert after.bgcolor.get_truecolor().hex.upper() == ground


def test_a_mixture_is_that_of_its_parts_on_a_light_ground() -> None:
    half = blend(palette.ACCENT, palette.BACKGROUND, 0.5)

    shown = in_light(Style(bgcolor=half))

    assert shown.bgcolor is not None
    assert shown.bgcolor.get_truecolor().hex.upper() == "#85AFEA"


def test_what_is_no_colour_of_the_palette_stays() -> None:
    style = Style.parse("#123456 on #654321 link https://example.org")

    assert in_light(style) == style


def test_a_terminal_says_of_which_kind_its_ground_is(monkeypatch: pytest.MonkeyPatch) -> None:
    is_light = {"0;15": True, "0;default;7": True, "15;0": False, "": False, "odd": False}
    answers = {}
    for value in is_light:
        monkeypatch.setenv("COLORFGBG", value)
        answers[value] = theme.is_light_ground()

    assert answers == is_light


def test_words_of_a_finding_can_be_read_on_a_light_ground() -> None:
    contrasts = {
        severity: contrast_of(in_light(Style(color=mark.colour, bgcolor=palette.PANEL)))
        for severity, mark in palette.SEVERITY_MARKS.items()
    }

    assert {severity: each for severity, each in contrasts.items() if each < 4.5} == {}
