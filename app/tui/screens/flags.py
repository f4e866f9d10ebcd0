"""The flags of a trace in a list, from which they are gone to, changed and taken away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from stepscope.app.kept.flags import Flags
from stepscope.app.palette import FLAG, FLAG_GLYPH
from stepscope.app.present.spans.flag_words import HOW, NO_FLAGS, PUT_ALONE, rows_of
from stepscope.app.printable import plain
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.flags.flag_at import FlagAt, PlacedFlags
from stepscope.app.tui.ink import BACKGROUND, MUTED, ink
from stepscope.app.tui.widgets.table import Cell, Column, Table
from stepscope.ingest.errors import StepscopeError

KEYS = "enter goes there · e changes it · d takes it away · esc closes"
KEYS_OF_TWO = f"{PUT_ALONE} · enter goes there · esc closes"
FlagChoice = tuple[Literal["go", "change"], FlagAt]


class FlagRows:
    """Flags as rows of a table, by time."""

    columns: tuple[Column, ...] = (
        Column("", 1),
        Column("flag", 16, grows_to=30),
        Column("note"),
        Column("lane", 20, from_width=60),
        Column("time", 14, to_right=True),
    )
    nothing = NO_FLAGS

    def __init__(self, flags: tuple[FlagAt, ...], timeline: Timeline) -> None:
        self._rows = [*rows_of(flags, timeline)]

    def __len__(self) -> int:
        return len(self._rows)

    def cells(self, index: int) -> Sequence[Cell]:
        """Mark, name, note, lane, time."""
        name, note, lane, time = self._rows[index]
        quiet = ink(MUTED, BACKGROUND)
        return (
            (FLAG_GLYPH, ink(FLAG, BACKGROUND, bold=True)),
            (name, None),
            (plain(note), None),
            (lane, quiet),
            (time, quiet),
        )


class FlagsScreen(ModalScreen[FlagChoice | None]):
    """Answers the flag that is to be gone to or to be changed, or nothing.

    Without `kept` the flags can only be looked at.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,Y", "dismiss", "close"),
        Binding("down,j", "move(1)", "next flag"),
        Binding("up,k", "move(-1)", "previous flag"),
        Binding("enter", "choose('go')", "go there"),
        Binding("e,y", "choose('change')", "change it"),
        Binding("d,delete", "drop", "take it away"),
    ]

    def __init__(self, flags: PlacedFlags, timeline: Timeline, kept: Flags | None) -> None:
        super().__init__()
        self._flags, self._timeline, self._kept = flags, timeline, kept

    def compose(self) -> ComposeResult:
        """The list, and below it what can be done."""
        with Vertical(id="search"):
            yield Table(id="hits")
            yield Static("", id="flags-said", markup=False)

    def on_mount(self) -> None:
        """Show what there is."""
        self._list(0)

    def action_move(self, by: int) -> None:
        """Move between flags."""
        self.query_one(Table).move(by)

    def action_choose(self, what: Literal["go", "change"]) -> None:
        """Answer the flag at the cursor."""
        flag = self._at_cursor
        if flag is not None and (what == "go" or self._kept):
            self.dismiss((what, flag))

    def action_drop(self) -> None:
        """Take the flag at the cursor away."""
        flag = self._at_cursor
        if flag is None or self._kept is None:
            return
        try:
            self._kept.drop(flag.name)
        except StepscopeError as error:
            self.notify(str(error), severity="warning", markup=False)
        self._list(self.query_one(Table).cursor or 0)

    @on(Table.Chosen)
    def _choose(self) -> None:
        self.action_choose("go")

    def _hint(self, has_flags: bool) -> str:
        if self._kept is None:
            return KEYS_OF_TWO if has_flags else f"{PUT_ALONE} · esc closes"
        return KEYS if has_flags else f"{HOW} esc closes"

    @property
    def _at_cursor(self) -> FlagAt | None:
        cursor, flags = self.query_one(Table).cursor, self._flags.now
        return flags[cursor] if cursor is not None and cursor < len(flags) else None

    def _list(self, cursor: int) -> None:
        flags = self._flags.now
        table = self.query_one(Table)
        table.show(FlagRows(flags, self._timeline))
        table.point_at(min(cursor, len(flags) - 1) if flags else None)
        said = self._flags.failed or self._hint(bool(flags))
        self.query_one("#flags-said", Static).update(plain(said))
