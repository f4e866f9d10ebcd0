"""Which trace to open: one of those that were opened last, or a path that is typed in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from stepscope.app.printable import plain
from stepscope.app.tui.ink import BACKGROUND, MUTED, ink
from stepscope.app.tui.widgets.table import Cell, Column, Table

KEYS = "enter opens what is typed, else the one below · ↑ ↓ · esc closes"


class RecentRows:
    """Traces that were opened last, as rows of a table."""

    columns: tuple[Column, ...] = (Column("opened last", 30, grows_to=44), Column("folder"))
    nothing = "Nothing was opened before."

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def cells(self, index: int) -> Sequence[Cell]:
        """Its name, and where it lies."""
        path = self._paths[index]
        return (plain(path.name), None), (plain(str(path.parent)), ink(MUTED, BACKGROUND))


class OpenScreen(ModalScreen[Path | None]):
    """Asks for a path; answers one at which something lies, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("down", "move(1)", "next trace", priority=True),
        Binding("up", "move(-1)", "previous trace", priority=True),
    ]

    def __init__(self, recent: Sequence[Path]) -> None:
        super().__init__()
        self._recent = recent

    def compose(self) -> ComposeResult:
        """A line to type in, what was opened last, and what the keys do."""
        with Vertical(id="search"):
            yield Input(placeholder="a file or folder", select_on_focus=False)
            yield Table(id="hits")
            yield Static(KEYS, id="open-said", markup=False)

    def on_mount(self) -> None:
        """List what was opened last."""
        table = self.query_one(Table)
        table.show(RecentRows(self._recent))
        table.point_at(0 if self._recent else None)

    def action_move(self, by: int) -> None:
        """Move between traces that were opened last."""
        self.query_one(Table).move(by)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        if not event.value.strip():
            self._choose()
            return
        try:
            path = Path(event.value.strip()).expanduser()
            is_there = path.exists()
        except (OSError, ValueError, RuntimeError):
            is_there = False
        if is_there:
            self.dismiss(path)
        else:
            self.query_one("#open-said", Static).update("there is no such file: check the path")

    @on(Table.Chosen)
    def _choose(self) -> None:
        cursor = self.query_one(Table).cursor
        if cursor is not None:
            self.dismiss(self._recent[cursor])
