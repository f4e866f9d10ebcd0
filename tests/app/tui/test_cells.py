"""Text in cells: nothing steers the terminal, nothing leaves its line."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.style import Style

from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import ink
from stepscope.app.widths import fit, width_of, wrap

PLAIN = ink("#FFFFFF", "#000000")
LOUD = ink("#FF0000", "#000000")
# No surrogates: no terminal or file can encode them; `plain` has a test of its own for those.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@given(TEXT, st.integers(-10, 30), st.integers(0, 30))
def test_a_line_keeps_its_width_whatever_is_put_on_it(text: str, x: int, width: int) -> None:
    line = Line(width, PLAIN)
    line.put(x, text, LOUD)
    strip = line.strip()
    assert sum(cell_len(segment.text) for segment in strip) == width == strip.cell_length


@given(TEXT, TEXT, st.integers(0, 12))
def test_text_put_over_wide_glyphs_leaves_no_halves(first: str, second: str, x: int) -> None:
    line = Line(16, PLAIN)
    line.put(0, first, PLAIN)
    line.put(x, second, LOUD)
    assert cell_len(line.strip().text) == 16


@given(TEXT)
def test_no_control_character_reaches_a_segment(text: str) -> None:
    line = Line(80, PLAIN)
    line.put(0, text, PLAIN)
    kinds = {unicodedata.category(char) for char in line.strip().text}
    assert not kinds & {"Cc", "Cf", "Zl", "Zp"}


@given(TEXT, st.integers(0, 20))
def test_fit_never_takes_more_cells_than_it_may(text: str, width: int) -> None:
    assert width_of(fit(text, width)) <= width


@given(TEXT, st.integers(2, 20))
def test_wrap_breaks_everything_to_the_width(text: str, width: int) -> None:
    assert all(width_of(line) <= width for line in wrap(text, width))


def test_fit_marks_what_it_cut() -> None:
    assert fit("qk_pv 7/8", 6) == "qk_pv…"
    assert fit("qk_pv", 6) == "qk_pv"


def test_wrap_keeps_words_whole_where_it_can() -> None:
    assert wrap("a MIX block took the AIC", 12) == ["a MIX block", "took the AIC"]
    assert wrap("overwhelming", 5) == ["overw", "helmi", "ng"]


def test_runs_of_equal_style_become_one_segment() -> None:
    line = Line(10, PLAIN)
    line.put(2, "abc", LOUD)
    line.put(5, "def", LOUD)
    assert [segment.text for segment in line.strip()] == ["  ", "abcdef", "  "]


def test_restyling_keeps_the_text() -> None:
    line = Line(4, PLAIN)
    line.put(0, "abcd", PLAIN)
    line.restyle(1, 3, Style(bold=True))
    bold = [segment.text for segment in line.strip() if segment.style and segment.style.bold]
    assert bold == ["bc"]


def test_put_right_ends_where_it_should() -> None:
    line = Line(10, PLAIN)
    start = line.put_right("12 ms", PLAIN)
    assert (start, line.strip().text) == (5, "     12 ms")
