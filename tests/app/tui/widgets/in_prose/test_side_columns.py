"""Parts of a text stand beside each other where a pane is wide, all of them and in their order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.present.blocks import Paragraph
from stepscope.app.tui.widgets.in_prose.side_columns import GAP, column_width
from stepscope.app.tui.widgets.prose import Beside, lay_out
from stepscope.app.widths import width_of

TEXTS = st.lists(st.lists(st.text("ab c", min_size=1, max_size=300), min_size=1), max_size=9)


def told(texts: list[list[str]], width: int) -> list[str]:
    parts = tuple(tuple(map(Paragraph, part)) for part in texts)
    return ["".join(piece.text for piece in line) for line in lay_out([Beside(parts)], width)]


@given(TEXTS, st.integers(20, 400))
def test_no_line_is_too_wide_and_no_word_is_lost(texts: list[list[str]], width: int) -> None:
    lines, room = told(texts, width), column_width(width)

    assert all(width_of(line) <= width for line in lines)
    columns = range(0, width, room + GAP)
    read = "".join(line[start : start + room] for start in columns for line in lines)
    assert read.replace(" ", "") == "".join(map("".join, texts)).replace(" ", "")


def test_a_narrow_pane_has_one_column_and_a_wide_one_as_many_as_fit() -> None:
    parts = [["first"], ["second"], ["third"]]

    assert told(parts, 100) == ["first", "second", "third"]
    assert told(parts, 270) == [f"{'first':<91}{'second':<91}third"]


def test_columns_are_of_like_height() -> None:
    assert len(told([["a"] * 10, ["b"] * 4, ["c"] * 5], 200)) == 10
