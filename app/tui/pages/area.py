"""The sums of the marked range: by name, state, lane, or lanes by names; written as CSV too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message

from stepscope.app.present.blocks import Block, Paragraph, Title, Tone
from stepscope.app.present.spans.area_table import (
    NO_AREA,
    SAYS,
    AreaTable,
    area_csv,
    area_file,
    area_lines,
    area_table,
)
from stepscope.app.timeline import SpanView
from stepscope.app.timeline.area.sums import AreaSums
from stepscope.app.timeline.area.which_lanes import area_lanes, next_lanes
from stepscope.app.timeline.model import Timeline
from stepscope.app.tui.actions import actions
from stepscope.app.tui.pages.page import Opened
from stepscope.app.tui.pages.table_page import TablePage, row_actions
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.tui.widgets.table import Cell, Column, Table
from stepscope.app.widths import width_of

KEYS = (
    *row_actions("row"),
    *actions(
        ("group", "t", "t", "sum by name, by state, by lane, or lanes by names", "by"),
        ("mark", "v", "v", "mark the time that the timeline has in view", "in view"),
        ("widen", "M", "M", "sum over the section, one lane, all lanes", "lanes"),
        ("jump", "enter", "enter", "underline the spans of the row, and go to the first", "spans"),
        ("export", "E", "E", "write all rows as CSV into this folder", "CSV"),
    ),
)
MOST_BESIDE = 40
"""Cells of the first column, where nothing in it is longer: the next is not far from it."""
Query = tuple[Timeline, tuple[int, int], tuple[int, ...], str]


class AreaRows:
    """The rows of an area's sums."""

    def __init__(self, table: AreaTable, nothing: str = "nothing lies in it") -> None:
        self._table, self.nothing = table, nothing
        first, *numbers = table.columns
        widths = [
            max(map(width_of, (name, *(row[at] for row in table.rows))), default=4)
            for at, name in enumerate(numbers, 1)
        ]
        self.columns: tuple[Column, ...] = (
            Column(first, most=max([MOST_BESIDE, *(width_of(row[0]) for row in table.rows)])),
            *(
                Column(name, min(width, 18), to_right=True, from_width=44 + 12 * at)
                for at, (name, width) in enumerate(zip(numbers, widths, strict=True))
            ),
        )

    def __len__(self) -> int:
        return len(self._table.rows)

    def cells(self, index: int) -> Sequence[Cell]:
        """A row as it stands."""
        return [(text, None) for text in self._table.rows[index]]


class AreaPage(TablePage):
    """What the mark of the timeline adds up to."""

    ACTIONS = KEYS
    WORDS = "area-words"
    SCOPED_CSS = False
    DEFAULT_CSS = """
    #area-words { height: 6; }
    #area-rows { height: 1fr; }
    """

    @dataclass
    class Summed(Message):
        """An area was added up."""

        sums: AreaSums
        table: AreaTable
        lines: list[str]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.opened: Opened | None = None
        self._by = "name"
        self._summed: AreaPage.Summed | None = None
        self._latest: Latest[Query] = Latest(self._sum)

    def compose(self) -> ComposeResult:
        """Lay out what area it is, and its table."""
        with Vertical():
            yield Prose(id="area-words")
            yield Table(id="area-rows")

    def show(self, opened: Opened) -> None:
        """Add up the mark, or say how to make one."""
        self.opened, view = opened, opened.view
        if view.mark is None:
            self._summed = None
            self._say([Title("Nothing is marked"), Paragraph(NO_AREA, Tone.MUTED)])
            self.table.show(AreaRows(AreaTable(("",), (), ()), nothing=""))
            return
        lanes = area_lanes(view.timeline, view.lane, view.marked_lanes)
        self._latest.ask((view.timeline, view.mark, lanes, self._by))

    @work(thread=True)
    def _sum(self, query: Query) -> None:
        timeline, mark, lanes, by = query
        sums = timeline.area(*mark, lanes)
        table, lines = area_table(sums, timeline, by), [*area_lines(sums, timeline)]
        self.post_message(self.Summed(sums, table, lines))

    @on(Summed)
    def _show_sums(self, event: Summed) -> None:
        event.stop()
        if not self._latest.is_wanted():
            return
        self._summed = event
        more = (
            f", and {event.table.num_more:,} more rows in the CSV" if event.table.num_more else ""
        )
        first, *others = event.lines
        said = [Paragraph(line, Tone.MUTED) for line in others]
        self._say([Title(first), *said, Paragraph(f"{SAYS[self._by]}{more}")])
        self.table.show(AreaRows(event.table))
        picked = self.opened and self.opened.view.pick
        self.table.point_at(event.table.picks.index(picked) if picked in event.table.picks else 0)

    def describe(self) -> None:
        """Underline the spans of the row at the cursor."""
        if self.opened and self._summed and self.table.cursor is not None:
            self.opened.view.pick = self._summed.table.picks[self.table.cursor]
            self.post_message(self.Changed())

    def action_jump(self) -> None:
        """Show the timeline with the spans of the row underlined, the cursor at the first."""
        if self._summed is None or self.opened is None or self.table.cursor is None:
            return
        self.describe()
        view, pick = self.opened.view, self._summed.table.picks[self.table.cursor]
        for lane, start in self._summed.sums.first_of(pick):
            span: SpanView | None = view.timeline.at(lane, start)
            if span is not None:
                view.go_to(span)
        self.app.call_later(self.app.run_action, "page('timeline')")

    def action_group(self) -> None:
        """Sum by the next of what an area is summed by."""
        groupings = [*SAYS]
        self._by = groupings[(groupings.index(self._by) + 1) % len(groupings)]
        if self.opened:
            self.opened.view.pick = None
            self.show(self.opened)

    def action_mark(self) -> None:
        """Mark what the timeline has in view."""
        if self.opened:
            self.opened.view.mark_view()
            self.show(self.opened)

    def action_widen(self) -> None:
        """Sum over the section's lanes, one lane, all lanes."""
        if self.opened and self.opened.view.mark:
            view = self.opened.view
            view.marked_lanes = next_lanes(view.timeline, view.lane, view.marked_lanes)
            view.pick = None
            self.show(self.opened)

    def action_export(self) -> None:
        """Write all rows as CSV beside whatever is there, and say where."""
        if self._summed is None or self.opened is None:
            self.notify("Nothing is marked, so there is nothing to write.", severity="warning")
            return
        text = area_csv(self._summed.sums, self.opened.view.timeline, self._by)
        name = area_file(self.opened.trace.name, self._by)
        try:
            written = written_beside(Path(name), text)
        except OSError as error:
            why = error.strerror or str(error)
            self.notify(f"{name} was not written: {why}", severity="error", markup=False)
            return
        self.notify(f"written: {written.absolute()}", markup=False)

    def _say(self, blocks: Sequence[Block]) -> None:
        self.query_one(f"#{self.WORDS}", Prose).show(blocks)


def written_beside(path: Path, text: str) -> Path:
    """Write a file that is not there yet: under this name, or with a number behind it."""
    for number in range(1, 10_000):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            with name.open("x", encoding="utf-8", newline="") as file:
                file.write(text)
        except FileExistsError:
            continue
        return name
    raise FileExistsError(17, "there are too many of its name", str(path))
