"""A table keeps its numbers however narrow the place is; the names beside them become shorter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.present.blocks import Table
from stepscope.app.tui.widgets.in_prose.table_pieces import LEAST_NAME, narrowed, table_pieces
from stepscope.app.widths import width_of

NAMES = st.text("abcdefgh_<>::", min_size=1, max_size=60)


def told(table: Table, width: int) -> list[str]:
    return ["".join(piece.text for piece in line) for line in table_pieces(table, width)]


@given(
    st.lists(st.tuples(NAMES, st.integers(0, 10**6)), min_size=1, max_size=8), st.integers(1, 90)
)
def test_numbers_stay_whole_wherever_there_is_room_for_them_and_a_short_name(
    rows: list[tuple[str, int]], width: int
) -> None:
    table = Table(("kernel", "count"), tuple(rows))
    needed = LEAST_NAME + 2 + max(5, *(len(f"{number:,}") for _, number in rows))

    lines = told(table, width)

    assert all(width_of(line) <= max(width, 1) for line in lines)
    if width >= needed:
        for line, (_, number) in zip(lines[2:], rows, strict=True):
            assert line.endswith(f"{number:,}")


def test_a_table_that_has_room_stays_as_it_is() -> None:
    table = Table(("kernel", "count"), (("a_long_name_of_a_kernel", 3),))

    assert narrowed(table, 80) == table


def test_a_table_that_ends_in_texts_goes_on_below() -> None:
    table = Table(
        ("n", "what"), ((3, "a text that is longer than its line, and goes on below it"),)
    )

    assert narrowed(table, 40) == table
    assert len(told(table, 40)) > 3


def test_the_rule_below_the_names_ends_where_the_pane_does() -> None:
    reason = "a text that is longer than its line, and goes on below it"
    table = Table(("n", "what"), ((3, reason),))

    lines = told(table, 40)

    assert sum("─" in line for line in lines) == 1
    assert width_of(lines[1]) <= 40
