"""Search: what is typed is looked up in a thread, the hits are listed, one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input

from stepscope.app.present.where import lane_name, when
from stepscope.app.timeline import Hit, Timeline
from stepscope.app.tui.ink import BACKGROUND, MUTED, ink
from stepscope.app.tui.widgets.latest import Latest
from stepscope.app.tui.widgets.table import Cell, Column, NoRows, Table
from stepscope.app.units import count


class HitRows:
    """Hits as rows of a table."""

    columns: tuple[Column, ...] = (
        Column("", 8),
        Column("found"),
        Column("where", 20, from_width=60),
        Column("×", 6, to_right=True, from_width=60),
        Column("time", 14, to_right=True),
    )

    nothing: str = "Nothing has that name."

    def __init__(self, hits: Sequence[Hit], timeline: Timeline) -> None:
        self._hits = hits
        self._timeline = timeline

    def __len__(self) -> int:
        return len(self._hits)

    def cells(self, index: int) -> Sequence[Cell]:
        """One hit: kind, name, lane, how often, when."""
        hit = self._hits[index]
        quiet = ink(MUTED, BACKGROUND)
        lane = "" if hit.lane is None else lane_name(self._timeline.lanes[hit.lane])
        times = count(hit.count) if hit.count > 1 else ""
        return (
            (hit.kind, quiet),
            (hit.label, None),
            (lane, quiet),
            (times, quiet),
            (when(hit.ts_ns, self._timeline), quiet),
        )


class SearchScreen(ModalScreen[Hit | None]):
    """Asks for a name or a number; answers the chosen hit, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("down", "move(1)", "next hit", priority=True),
        Binding("up", "move(-1)", "previous hit", priority=True),
    ]

    @dataclass
    class Found(Message):
        """A text was looked up."""

        text: str
        hits: Sequence[Hit]

    def __init__(self, timeline: Timeline, text: str = "") -> None:
        super().__init__()
        self._timeline = timeline
        self._text = text
        self._hits: Sequence[Hit] = ()
        self._found: str | None = None
        self._is_submitted = False
        self._latest: Latest[str] = Latest(self._find)

    def compose(self) -> ComposeResult:
        """A line to type in, the hits below."""
        with Vertical(id="search"):
            yield Input(
                self._text, placeholder="request, task, core, step …", select_on_focus=False
            )
            yield Table(id="hits")

    def action_move(self, by: int) -> None:
        """Move between hits."""
        self.query_one(Table).move(by)

    @on(Input.Changed)
    def _type(self, event: Input.Changed) -> None:
        self._latest.ask(event.value)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        if self._found == event.value:
            self._choose()
        else:
            self._is_submitted = True

    @work(thread=True)
    def _find(self, text: str) -> None:
        self.post_message(self.Found(text, self._timeline.find(text)))

    @on(Found)
    def _list(self, event: Found) -> None:
        if not self._latest.is_wanted():
            return
        self._found, self._hits = event.text, event.hits
        table = self.query_one(Table)
        table.show(HitRows(event.hits, self._timeline) if event.text.strip() else NoRows())
        table.point_at(0 if event.hits else None)
        if self._is_submitted:
            self._is_submitted = False
            self._choose()

    @on(Table.Chosen)
    def _choose(self) -> None:
        cursor = self.query_one(Table).cursor
        if cursor is not None:
            self.dismiss(self._hits[cursor])
