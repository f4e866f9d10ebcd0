"""Tables on a terminal or in a pipe."""

from __future__ import annotations

from stepscope.app.text_table import WIDEST, format_cell, format_table


def test_numbers_stand_to_the_right_and_text_to_the_left() -> None:
    lines = format_table(("policy", "steps"), [("all-free", 7), ("barrier", 1200)])

    assert lines == [
        "policy    steps",
        "────────  ─────",
        "all-free      7",
        "barrier   1,200",
    ]


def test_a_table_without_rows_is_its_header() -> None:
    assert format_table(("a", "b"), []) == ["a  b", "─  ─"]


def test_a_long_name_is_cut_and_a_missing_value_is_a_dash() -> None:
    assert len(format_cell("x" * 500)) == WIDEST
    assert format_cell(None) == "-"


def test_a_hostile_name_stays_on_its_line() -> None:
    assert format_cell("a\nb\x1b[2J") == "a·b·[2J"
