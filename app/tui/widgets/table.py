"""A table that pages over any number of rows: it asks for the rows on the screen only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import BACKGROUND, MUTED, RAISED, TEXT, ink, on
from stepscope.app.tui.widgets.scrolling import Scrolling
from stepscope.app.widths import fit, fit_middle


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, its width in cells (0 takes what is left), and where its text stands.

    A column is left out where the table is narrower than `from_width`. It takes up to `grows_to`
    cells where that leaves `ENOUGH` to the one that takes what is left; cut, it shows its end too.
    What is left is taken up to `most` cells, if that is given: what stands beside it is then near.
    """

    title: str
    width: int = 0
    to_right: bool = False
    from_width: int = 0
    grows_to: int = 0
    most: int = 0


ENOUGH = 60
"""Cells that a sentence needs beside names that are shown whole."""
Cell = tuple[str, Style | None] | Callable[[Line, int, int], None]
"""A text and its style, or what draws itself: on a line, from a first cell on, of so many."""


class Rows(Protocol):
    """What a table shows: columns, the cells of a row by its number, what to say without rows."""

    columns: tuple[Column, ...]
    nothing: str

    def __len__(self) -> int: ...

    def cells(self, index: int) -> Sequence[Cell]:
        """What stands in each column."""
        ...


class NoRows:
    """What a table shows before it is given anything."""

    columns: tuple[Column, ...] = ()
    nothing: str = ""

    def __len__(self) -> int:
        return 0

    def cells(self, index: int) -> Sequence[Cell]:
        """No cells."""
        return ()


class Table(Scrolling):
    """Rows under a header that stays, one of them under the cursor."""

    @dataclass
    class Chosen(Message):
        """A row was clicked; `again` when it was under the cursor already."""

        table: Table
        index: int
        again: bool

        @property
        def control(self) -> Table:
            """The table, for handlers that listen to one of several."""
            return self.table

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.rows: Rows = NoRows()
        self.cursor: int | None = None

    def show(self, rows: Rows) -> None:
        """Show other rows, from the top."""
        self.rows = rows
        self.cursor = None
        self._measure()
        self.scroll_to(y=0, animate=False)

    def point_at(self, index: int | None) -> None:
        """Put the cursor on a row and scroll so that it shows."""
        if index != self.cursor:
            self.cursor = index
            self.refresh()
        if index is not None:
            # The header covers the first line of the view.
            self.scroll_to_region(Region(0, index, 1, 2), animate=False, x_axis=False)

    def move(self, by: int) -> None:
        """Move the cursor down or up, as far as there are rows."""
        if len(self.rows):
            here = self.cursor if self.cursor is not None else (-1 if by > 0 else 0)
            self.point_at(min(max(here + by, 0), len(self.rows) - 1))

    @property
    def page(self) -> int:
        """How many rows fit on the screen."""
        return max(self.size.height - 1, 1)

    def on_mount(self) -> None:
        """Measure what is to be scrolled."""
        self._measure()

    def on_resize(self) -> None:
        """Measure again, and keep the cursor in sight."""
        self._measure()
        self.point_at(self.cursor)

    def render_line(self, y: int) -> Strip:
        """Paint the header or a row."""
        line = Line(self.room, ink(TEXT, BACKGROUND))
        index = self.scroll_offset.y + y - 1
        if y == 0:
            self._paint(line, [(column.title, None) for column in self.rows.columns], MUTED)
        elif y == 1 and not len(self.rows):
            line.put(1, self.rows.nothing, ink(MUTED, BACKGROUND))
        elif index < len(self.rows):
            cells = self.rows.cells(index)
            self._paint(line, cells, TEXT)
            if index == self.cursor:
                line.restyle(0, line.width, on(RAISED))
            self._draw(line, cells)
        return line.strip()

    def on_click(self, event: events.Click) -> None:
        """Choose the row that was clicked."""
        index = self.scroll_offset.y + event.y - 1
        if event.y > 0 and index < len(self.rows):
            event.stop()
            again = self.cursor == index
            self.point_at(index)
            self.post_message(self.Chosen(self, index, again))

    def _measure(self) -> None:
        self.virtual_size = Size(self.room, len(self.rows) + 1)
        self.refresh()

    def _paint(self, line: Line, cells: Sequence[Cell], colour: str) -> None:
        plain_style = ink(colour, BACKGROUND)
        placed = zip(_places(self.rows.columns, line.width), cells, strict=True)
        for (column, start, width), cell in placed:
            if not width or callable(cell):
                continue
            text, style = cell
            shown = (fit_middle if column.grows_to else fit)(text, width)
            if column.to_right:
                line.put_right(shown, style or plain_style, start + width)
            else:
                line.put(start, shown, style or plain_style)

    def _draw(self, line: Line, cells: Sequence[Cell]) -> None:
        """What draws itself comes last, in its own colours under the cursor too."""
        placed = zip(_places(self.rows.columns, line.width), cells, strict=True)
        for (_, start, width), cell in placed:
            if width and callable(cell):
                cell(line, start, width)


def _places(columns: Sequence[Column], room: int) -> list[tuple[Column, int, int]]:
    """Each column with its first cell and width (0 when left out), two cells between them."""
    shown = [column for column in columns if room >= column.from_width]
    left = max(room - sum(column.width for column in shown) - 2 * len(shown), 0)
    widths = {}
    for column in shown:
        more = min(max(column.grows_to - column.width, 0), max(left - ENOUGH, 0))
        widths[column], left = column.width + more, left - more
    x, placed = 1, []
    for column in columns:
        rest = min(left, column.most or left)
        width = (widths[column] or rest) if column in widths else 0
        placed.append((column, x, width))
        x += width + 2 if width else 0
    return placed
