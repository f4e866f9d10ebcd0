"""Text is measured in cells of a terminal, so that columns stand below each other."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.present.blocks import Table
from stepscope.app.present.diff_text import _table
from stepscope.app.present.plain_text import table_lines
from stepscope.app.text_table import WIDEST, format_cell, format_table
from stepscope.app.widths import (
    LEAST_IN_TWO,
    aligned,
    fit,
    fit_middle,
    graphemes,
    padded,
    width_of,
    wrap,
)

NAMES = st.text("a_é-数字キ한글\uff21\uff11🚀👩🔥\u0301\u0308\u20dd\n\x1b\u200d", max_size=90)


def cells(text: str) -> int:
    """Cells by Unicode's own tables: wide and full-width take two, marks none."""
    return sum(
        0 if unicodedata.combining(char) or unicodedata.category(char) == "Me"
        else 1 + (unicodedata.east_asian_width(char) in "WF")
        for char in text
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("abc", 3),
        ("数字", 4),
        ("e\u0301", 1),
        ("한글", 4),
        ("🚀", 2),
        ("\uff21", 2),
        ("a\nb", 3),
        ("", 0),
    ],
)
def test_a_wide_character_takes_two_cells_and_a_mark_none(text: str, width: int) -> None:
    assert width_of(text) == width


@given(st.lists(st.tuples(NAMES, st.integers(0, 10**6), NAMES), min_size=1, max_size=8))
def test_all_rows_of_a_printed_table_are_equally_wide(rows: list[tuple[str, int, str]]) -> None:
    lines = format_table(("name", "reason", "steps"), [(name, why, n) for name, n, why in rows])

    assert {cells(line) for line in lines} == {cells(lines[1])}


@given(st.lists(st.tuples(NAMES, st.just("1.0 ms")), min_size=1, max_size=8))
def test_all_rows_of_the_tables_of_blame_and_diff_are_equally_wide(
    rows: list[tuple[str, str]],
) -> None:
    shown = [(format_cell(name), took) for name, took in rows]

    made = Table(("cause", "took"), tuple(shown), to_right=("took",))
    for lines in (list(table_lines(made)), list(table_lines(_table(("what", "A"), shown)))):
        assert len({cells(line) for line in lines}) == 1


@given(NAMES)
def test_a_value_is_cut_to_its_cells_and_keeps_what_fits(text: str) -> None:
    shown = format_cell(text)

    assert cells(shown) <= WIDEST
    assert shown.endswith("…") == (cells(text.replace("\n", ".")) > WIDEST or text.endswith("…"))


@given(NAMES, st.integers(0, 40), st.booleans())
def test_a_padded_text_has_as_many_cells_as_it_is_given(
    text: str, width: int, to_right: bool
) -> None:
    assert width_of(padded(fit(text, width), width, to_right)) == width


def test_lines_have_no_blanks_at_their_ends() -> None:
    assert list(aligned(("数", "b"), [("a", ""), ("", "x")], (False, False))) == [
        "数  b",
        "a",
        "    x",
    ]


@given(NAMES, st.integers(0, 40))
def test_a_name_that_is_cut_in_its_middle_keeps_both_its_ends(text: str, width: int) -> None:
    shown = fit_middle(text, width)

    assert width_of(shown) <= width
    if width_of(text) <= width or width < LEAST_IN_TWO:
        assert shown == fit(text, width)
        return
    head, tail = shown.split("…")
    whole = fit(text, 1_000)
    assert whole.startswith(head)
    assert whole.endswith(tail)
    assert min(width_of(head), width_of(tail)) >= width // 3
    assert width_of(shown) >= width - 2


def test_names_that_differ_at_their_ends_are_told_apart() -> None:
    names = [f"queued_requests.{what}" for what in ("num_prefill", "sum_prefill", "num_decode")]

    assert len({fit(name, 16) for name in names}) == 1
    assert len({fit_middle(name, 20) for name in names}) == 3


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("kernel_paged_attention_2d", 16, ["kernel_paged_", "attention_2d"]),
        ("vllm/v1/core/sched/scheduler.py", 20, ["vllm/v1/core/sched/", "scheduler.py"]),
        ("gemm(a,b)", 4, ["gemm", "(a,", "b)"]),
        ("a_elementwise", 8, ["a_elemen", "twise"]),
        ("elementwise", 6, ["elemen", "twise"]),
    ],
)
def test_a_name_is_broken_behind_a_joint_where_one_is_near(
    text: str, width: int, lines: list[str]
) -> None:
    assert wrap(text, width) == lines


@pytest.mark.parametrize("unit", ["s", "ms", "µs", "ns", "µs,", "ms)"])
def test_a_time_stays_beside_its_unit(unit: str) -> None:
    first, second, *_ = wrap(f"it took 1.93 {unit} of all of it", 12)

    assert first == "it took"
    assert second.startswith(f"1.93 {unit}")


@given(NAMES, st.integers(2, 30))
def test_a_text_is_the_same_however_it_is_broken(text: str, width: int) -> None:
    lines = wrap(text, width)

    assert all(width_of(line) <= width for line in lines)
    shown = "".join(glyph for glyph, _ in graphemes(text))
    assert "".join("".join(lines).split()) == "".join(shown.split())
