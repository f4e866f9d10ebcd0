"""A query over the trace's tables: its rows, where each leads, and its answer as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from stepscope.app.present.blocks import Block, Fact, Paragraph, Title, Tone
from stepscope.app.printable import plain
from stepscope.app.queries.asked_query import Answer
from stepscope.app.queries.exporting import TYPES, answer_file, written
from stepscope.app.queries.row_leads import Leads
from stepscope.app.tui.actions import actions
from stepscope.app.tui.pages.page import Opened
from stepscope.app.tui.pages.table_page import TablePage, row_actions
from stepscope.app.tui.picture_file import saved_new
from stepscope.app.tui.screens.query import QueryScreen
from stepscope.app.tui.widgets.in_prose.target_action import action_of
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.tui.widgets.table import Cell, Column, Table
from stepscope.app.widths import width_of
from stepscope.ingest.errors import StepscopeError

KEYS = (
    *row_actions("row"),
    *actions(
        ("ask", "e,i", "e", "ask in SQL, or change the query", "ask"),
        ("jump", "enter", "enter", "go to what the row names: finding, core, time, step, request",
         "go to it"),
        ("columns(1)", "l,right", "l", "columns further to the right", "columns"),
        ("columns(-1)", "h,left", "h", "columns further to the left", "columns"),
        ("form", "t", "t", "what E writes: CSV, Parquet or JSON", "form"),
        ("export", "E", "E", "write the rows into this folder", "write"),
    ),
)  # fmt: skip
WIDEST = 32
LOOKED_AT = 200
"""Rows that say how wide a column is."""
HOW = "e asks the tables of the trace in SQL, with completion; enter goes to what a row names."


def text_of_cell(value: object) -> str:
    """A value as a cell shows it: what is not known as a dash, text as text."""
    if value is None:
        return "—"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:,.6g}" if isinstance(value, float) else plain(str(value))


class AnswerRows:
    """The rows of an answer, with as many columns as there is room for from the `first` on."""

    nothing = "no row"

    def __init__(self, answer: Answer | None, first: int = 0) -> None:
        self._frame = None if answer is None else answer.frame
        self._widths: list[tuple[str, int, bool]] = []
        if self._frame is not None:
            self._widths = [_width(series) for series in self._frame.head(LOOKED_AT).iter_columns()]
        self.first = first
        self.columns: tuple[Column, ...] = ()
        self.begin_at(first)

    def begin_at(self, first: int) -> None:
        """Have another column be the first that is shown."""
        taken, columns = 1, list[Column]()
        for name, width, is_number in self._widths[first:]:
            taken += width + 2
            columns.append(Column(name, width, is_number, taken if columns else 0))
        self.first, self.columns = first, tuple(columns)

    def last_first(self, room: int) -> int:
        """The first column behind which all others have room."""
        left, at = room - 1, len(self._widths)
        while at and (left := left - self._widths[at - 1][1] - 2) >= 0:
            at -= 1
        return min(at, max(len(self._widths) - 1, 0))

    def told(self, room: int) -> str:
        """Which columns are shown, where that is not all of them."""
        shown, total = sum(each.from_width <= room for each in self.columns), len(self._widths)
        if shown == total:
            return ""
        return f"columns {self.first + 1} to {self.first + shown} of {total}, h l shows others"

    def __len__(self) -> int:
        return 0 if self._frame is None else len(self._frame)

    def row(self, index: int) -> dict[str, Any]:
        """A row by the names of its columns."""
        return {} if self._frame is None else self._frame.row(index, named=True)

    def cells(self, index: int) -> Sequence[Cell]:
        """A row as it stands."""
        values = [*self.row(index).values()][self.first :]
        return [(text_of_cell(value), None) for value in values]


def _width(series: pl.Series) -> tuple[str, int, bool]:
    """What a column is called, how wide it is, and whether it holds numbers."""
    cells = [plain(series.name), *map(text_of_cell, series)]
    width = min(max(map(width_of, cells)), WIDEST)
    return plain(series.name), width, series.dtype.is_numeric()


class SqlPage(TablePage):
    """The answer of the query that was asked last."""

    ACTIONS = KEYS
    WORDS = "sql-row"
    SCOPED_CSS = False
    DEFAULT_CSS = """
    #sql-words { height: 3; }
    #sql-rows { height: 1fr; }
    #sql-row { height: 9; border-top: solid $border; }
    .-low #sql-row { height: 6; }
    """

    @dataclass
    class Wrote(Message):
        """The rows were written, or it is said why not."""

        said: str
        is_there: bool

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.opened: Opened | None = None
        self.answer: Answer | None = None
        self._form = "csv"
        self._rows = AnswerRows(None)
        self._leads: Leads | None = None

    def compose(self) -> ComposeResult:
        """Lay out the query, its rows, and the row at the cursor in full."""
        with Vertical():
            yield Prose(id="sql-words")
            yield Table(id="sql-rows")
            yield Prose(id="sql-row")

    def show(self, opened: Opened) -> None:
        """Show the answer, of this trace alone."""
        if self.opened is not opened:
            self.answer, self._rows = None, AnswerRows(None)
            self.table.show(self._rows)
            self.query_one("#sql-row", Prose).show([])
        self.opened = opened
        self._leads = Leads(opened.view.timeline, opened.models.composition,
                            opened.view.findings or ())  # fmt: skip
        self._say()

    def _say(self) -> None:
        if self.answer is None:
            blocks: list[Block] = [Title("SQL"), Paragraph(HOW, Tone.MUTED)]
        else:
            told = f"{self.answer.told} · E writes {self._form.upper()}"
            if columns := self._rows.told(self.table.room):
                told = f"{columns} · {told}"
            if self.answer.is_cut:
                told += ", of the rows up to there; `stepscope sql` has all"
            query = " ".join(self.answer.query.split())
            blocks = [Title(query), Paragraph(told, Tone.MUTED)]
        self.query_one("#sql-words", Prose).show(blocks)

    def action_ask(self) -> None:
        """Open the line for a query."""
        if self.opened:
            before = "" if self.answer is None else " ".join(self.answer.query.split())
            self.app.push_screen(QueryScreen(self.opened.trace, before), self._take)

    def _take(self, answer: Answer | None) -> None:
        if answer is None:
            return
        self.answer, self._rows = answer, AnswerRows(answer)
        self.table.show(self._rows)
        self._say()
        if len(self._rows):
            self.point_at(0)
        else:
            self.describe()

    def on_resize(self) -> None:
        """Say which columns are shown by now."""
        self.call_after_refresh(self._say)

    def action_columns(self, by: int) -> None:
        """Show columns further to the right (1) or to the left (-1)."""
        last = max(self._rows.last_first(self.table.room), self._rows.first if by < 0 else 0)
        self._rows.begin_at(min(max(self._rows.first + by, 0), last))
        self.table.refresh()
        self._say()

    def describe(self) -> None:
        """Say the whole row at the cursor."""
        at = self.table.cursor
        row = {} if at is None else self._rows.row(at)
        facts = [Fact(plain(name), (text_of_cell(value),)) for name, value in row.items()]
        self.query_one("#sql-row", Prose).show(facts)

    def action_jump(self) -> None:
        """Go to the most exact place that the row names."""
        if self.table.cursor is None or self._leads is None:
            return
        target = self._leads.row(self._rows.row(self.table.cursor))
        if target is None:
            self.notify("The row names no finding, core, time, step or request.", markup=False)
            return
        self.app.call_later(self.app.run_action, action_of(target))

    def action_form(self) -> None:
        """Write in the next of the forms."""
        forms = [*TYPES]
        self._form = forms[(forms.index(self._form) + 1) % len(forms)]
        self._say()

    def action_export(self) -> None:
        """Write the rows beside whatever is there, and say where."""
        if self.answer is None or self.opened is None:
            self.notify("Nothing was asked, so there is nothing to write.", severity="warning")
            return
        self._write(self.answer, self.opened.trace.name, self._form)

    @work(thread=True)
    def _write(self, answer: Answer, trace: str, form: str) -> None:
        name = answer_file(trace, form, is_cut=answer.is_cut)
        try:
            file = saved_new(Path(), name, written(answer.frame, form))
            self.post_message(self.Wrote(f"written: {file.absolute()}", is_there=True))
        except StepscopeError as error:
            self.post_message(self.Wrote(str(error), is_there=False))
        except OSError as error:
            told = f"{name} was not written: {error.strerror or error}"
            self.post_message(self.Wrote(told, is_there=False))

    @on(Wrote)
    def _tell(self, event: Wrote) -> None:
        if event.is_there:
            self.notify(event.said, markup=False)
        else:
            self.notify(event.said, severity="error", markup=False)
