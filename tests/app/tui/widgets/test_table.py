"""A table asks for the rows on the screen, however many there are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from textual.app import App, ComposeResult

from stepscope.app.tui.widgets.table import ENOUGH, Cell, Column, NoRows, Table
from tests.app.tui.stage import settle, text_of


class Numbers:
    """Ten million rows, each of which is counted when it is asked for."""

    columns: tuple[Column, ...] = (
        Column("n", 10, to_right=True),
        Column("words"),
        Column("extra", 8, from_width=60),
    )
    nothing = "no numbers"

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __len__(self) -> int:
        return 10_000_000

    def cells(self, index: int) -> Sequence[Cell]:
        self.asked.append(index)
        return ((f"{index:,}", None), (f"row {index} " * 5, None), ("extra", None))


class TableApp(App[None]):
    """A table alone."""

    def compose(self) -> ComposeResult:
        yield Table(id="table")


async def test_only_the_rows_on_the_screen_are_asked_for() -> None:
    rows = Numbers()
    async with TableApp().run_test(size=(40, 10)) as pilot:
        table = pilot.app.query_one(Table)
        table.show(rows)
        await settle(pilot)
        table.point_at(9_999_999)
        await settle(pilot)
        assert len(set(rows.asked)) < 40
        lines = text_of(table).splitlines()
        assert lines[0].split() == ["n", "words"]
        assert lines[-1].split()[:3] == ["9,999,999", "row", "9999999"]


@pytest.mark.parametrize(("room", "number_at"), [(30, 25), (200, 43)])
async def test_a_number_stands_near_its_name_however_wide_the_table_is(
    room: int, number_at: int
) -> None:
    class Named(Numbers):
        columns: tuple[Column, ...] = (Column("name", most=40), Column("n", 3, to_right=True))

        def cells(self, index: int) -> Sequence[Cell]:
            return ((f"kernel {index}", None), ("123", None))

    async with TableApp().run_test(size=(room, 6)) as pilot:
        table = pilot.app.query_one(Table)
        table.show(Named())
        await settle(pilot)
        line = text_of(table).splitlines()[1]
        assert line.startswith(" kernel 0 ")
        assert line.index("123") == number_at


async def test_columns_give_way_where_it_is_narrow_and_texts_are_cut() -> None:
    async with TableApp().run_test(size=(80, 6)) as pilot:
        table = pilot.app.query_one(Table)
        table.show(Numbers())
        await settle(pilot)
        assert "extra" in text_of(table)
        await pilot.resize_terminal(30, 6)
        await settle(pilot)
        assert "extra" not in text_of(table)
        assert "…" in text_of(table)


class Names:
    """Rows of a long name and of a sentence."""

    columns: tuple[Column, ...] = (Column("name", 6, grows_to=20), Column("what"))
    nothing = ""

    def __len__(self) -> int:
        return 1

    def cells(self, index: int) -> Sequence[Cell]:
        return (("rank 3 · group 2 · AIV1"[:20], None), ("x" * 200, None))


@pytest.mark.parametrize(("room", "name"), [(100, "rank 3 · group 2 · A"), (75, "rank…2 · A")])
async def test_a_name_is_whole_where_a_sentence_beside_it_has_enough(room: int, name: str) -> None:
    async with TableApp().run_test(size=(room, 4)) as pilot:
        table = pilot.app.query_one(Table)
        table.show(Names())
        await settle(pilot)
        shown = text_of(table).splitlines()[1]
        assert shown.strip().startswith(f"{name}  x")
        assert shown.count("x") >= ENOUGH - 1


async def test_the_cursor_moves_by_rows_and_stops_at_the_ends() -> None:
    async with TableApp().run_test(size=(40, 10)) as pilot:
        table = pilot.app.query_one(Table)
        table.show(Numbers())
        for by, expected in ((1, 0), (1, 1), (-5, 0), (table.page, 9)):
            table.move(by)
            assert table.cursor == expected


async def test_a_click_says_which_row_and_whether_it_was_chosen_before() -> None:
    said: list[tuple[int, bool]] = []

    class Listening(TableApp):
        def on_table_chosen(self, event: Table.Chosen) -> None:
            said.append((event.index, event.again))

    async with Listening().run_test(size=(40, 10)) as pilot:
        pilot.app.query_one(Table).show(Numbers())
        for y in (3, 3, 0):
            await pilot.click("#table", offset=(5, y))
            await settle(pilot)
        assert said == [(2, False), (2, True)], "the header is not a row"


async def test_without_rows_it_says_why() -> None:
    class Nothing(NoRows):
        columns = Numbers.columns
        nothing = "no numbers"

    async with TableApp().run_test(size=(40, 10)) as pilot:
        table = pilot.app.query_one(Table)
        table.show(Nothing())
        table.move(1)
        await settle(pilot)
        assert "no numbers" in text_of(table)
        assert table.cursor is None
