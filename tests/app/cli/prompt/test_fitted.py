"""Blocks in a given width: what is long goes on below, and what is left out is named."""

from __future__ import annotations

from stepscope.app.cli.prompt.fitted import MOST_LINES, fitted
from stepscope.app.present.blocks import Paragraph, Table
from stepscope.app.widths import width_of
from tests.looped import looped

WORDS = "one two three four five six seven eight nine ten"


def test_a_long_line_goes_on_below_its_begin() -> None:
    assert fitted([Paragraph(f"  {WORDS}")], 20) == [
        "  one two three",
        "    four five six",
        "    seven eight nine",
        "    ten",
    ]


def test_a_long_cell_goes_on_in_its_column() -> None:
    table = Table(("n", "text", "to"), ((1, "one two three", "x"),))

    assert fitted([table], 15) == [
        "n  text      to",
        "─  ────────  ──",
        "1  one two   x",
        "   three",
    ]


def test_a_very_long_cell_ends_in_an_ellipsis() -> None:
    told = fitted([Table(("text",), ((WORDS,),))], 10)

    assert len(told) == 2 + MOST_LINES
    assert told[-1].endswith("…")


def test_columns_without_room_are_named_below() -> None:
    table = Table(("number", "other", "third"), ((123456789, 2, 3),))

    assert fitted([table], 22)[-1] == "too narrow for third"
    assert fitted([table], 16)[-2:] == ["too narrow for", "  other, third"]


@looped("width", [8, 20, 40, 80])
@looped("name", ["一二三四五六七八九十" * 3, "x" * 50, WORDS])
def test_no_line_is_wider_than_asked(width: int, name: str) -> None:
    blocks = (Paragraph(name), Table(("a", "b"), ((name, 1), (name, 22))))

    assert max(map(width_of, fitted(blocks, width))) <= width


def test_a_long_line_of_source_goes_on_where_it_began() -> None:
    table = Table(("", ""), ((1, "def a():"), (2, "    yield from b")), is_ruled=False)

    assert fitted([table], 14) == ["1  def a():", "2      yield", "       from b"]


def test_columns_that_are_all_narrow_are_all_shown() -> None:
    ranks = Table(("", "rank", "step"), (("→", 0, 43), ("", 1, 45)))

    assert fitted([ranks], 80) == [
        "   rank  step",
        "─  ────  ────",
        "→     0    43",
        "      1    45",
    ]
