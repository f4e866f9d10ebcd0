"""What if: a line in which changes are asked for, what can be, and what came of a run with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input
from textual.worker import get_current_worker

from stepscope.app.present.blocks import AtStep, Paragraph, Tone
from stepscope.app.replay.what_if.asked import taken
from stepscope.app.replay.what_if.runs import Run, WhatIfs
from stepscope.app.replay.what_if.told import NOT_POSSIBLE, choices_told, placeholder, run_told
from stepscope.app.tui.ink import ACCENT, BACKGROUND, MUTED, PANEL, ink
from stepscope.app.tui.widgets.in_prose.target_action import action_of
from stepscope.app.tui.widgets.prose import Prose, Shown
from stepscope.app.tui.widgets.table import Cell, Column, Table
from stepscope.app.tui.widgets.text_bar import Bar, Piece
from stepscope.ingest.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.app.replay.what_if.choices import Choice

LOOKS_EVERY_S = 0.2
"""How often a thread looks whether a run that says nothing is still wanted."""


class ChoiceRows:
    """What can be chosen, as rows of a table."""

    columns: tuple[Column, ...] = (
        Column("", 7),
        Column("what can be different", 34),
        Column("recorded", 14),
        Column("what it is", from_width=78),
    )
    nothing: str = "Nothing can be chosen."

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.choices = choices

    def __len__(self) -> int:
        return len(self.choices)

    def cells(self, index: int) -> Sequence[Cell]:
        """What it is, how it is asked for, what was recorded, and what it means."""
        each, quiet = self.choices[index], ink(MUTED, BACKGROUND)
        return (each.what, quiet), (each.words, None), (each.recorded, quiet), (each.says, quiet)


class Hints(Bar):
    """What can be done now: keys that can be clicked."""

    def __init__(self) -> None:
        super().__init__(id="what-hints")
        self.hints: Sequence[tuple[str, str, str]] = ()

    def show(self, hints: Sequence[tuple[str, str, str]]) -> None:
        """Show other keys, each with what it does and its action."""
        self.hints = hints
        self.refresh()

    def left(self) -> Sequence[Piece]:
        """The keys, as far as there is room."""
        return list(self._pieces())

    def _pieces(self) -> Iterator[Piece]:
        for key, does, action in self.hints:
            yield Piece(f" {key}", ink(ACCENT, PANEL, bold=True), f"screen.{action}")
            yield Piece(f" {does} ", ink(MUTED, PANEL), f"screen.{action}")


class WhatIfScreen(ModalScreen[None]):
    """Asks for changes, has them run, and shows how far that is and what came of it.

    What is under way goes on where the screen is closed.
    """

    DEFAULT_CSS = """
    WhatIfScreen { align: center middle; background: $background 60%; }
    #what-if { width: 104; max-width: 100%; height: 90%; background: $surface; border: solid $border; padding: 0 1; }
    #what-if Input { border: none; height: 1; padding: 0 1; background: $panel; }
    #what-said { height: 10; padding: 1 1 0 1; }
    WhatIfScreen.-told #what-said, WhatIfScreen.-impossible #what-said { height: 1fr; }
    #what-choices { height: 1fr; }
    #what-hints { height: 1; background: $surface; }
    WhatIfScreen.-told #what-choices, WhatIfScreen.-impossible #what-choices { display: none; }
    """  # noqa: E501 - a rule a line, as in the application's own
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "close", priority=True),
        Binding("down", "move(1)", "down", priority=True),
        Binding("up", "move(-1)", "up", priority=True),
        Binding("pagedown", "move(10)", "a page down", priority=True),
        Binding("pageup", "move(-10)", "a page up", priority=True),
        Binding("tab", "take", "take the choice", priority=True),
        Binding("ctrl+x", "cancel", "cancel the run", priority=True),
        Binding("ctrl+g", "go", "go to where they diverge", priority=True),
    ]

    @dataclass
    class Listed(Message):
        """What can be chosen was found, or why nothing can."""

        choices: Sequence[Choice]
        example: str
        blocks: Sequence[Shown]

    @dataclass
    class Moved(Message):
        """A run said something."""

        run: Run

    def __init__(self, what_ifs: WhatIfs) -> None:
        super().__init__()
        self._what_ifs = what_ifs
        self._about: Sequence[Shown] = ()
        self._run: Run | None = None

    def compose(self) -> ComposeResult:
        """A line to type in, what is said of it, and what can be chosen."""
        with Vertical(id="what-if"):
            yield Input(placeholder="what if …", select_on_focus=False, id="what-line")
            yield Prose(id="what-said")
            yield Table(id="what-choices")
            yield Hints()

    def on_mount(self) -> None:
        """Find what can be chosen, and show what was asked last."""
        self._say([Paragraph("looking at what can be different …", Tone.MUTED)])
        self._list()

    @property
    def line(self) -> Input:
        """The line."""
        return self.query_one(Input)

    @work(thread=True, group="list")
    def _list(self) -> None:
        try:
            choices = self._what_ifs.choices
            listed, example = choices.listed(), placeholder(choices)
            found = self.Listed(listed, example, list(choices_told(choices)))
        except StepscopeError as error:
            why = [Paragraph(NOT_POSSIBLE), Paragraph(str(error), Tone.WARNING)]
            found = self.Listed((), "", why)
        self.post_message(found)

    @on(Listed)
    def _show_choices(self, event: Listed) -> None:
        self._about = event.blocks
        self.line.placeholder = event.example
        self.line.disabled = not event.choices
        self._say(self._about)
        self.query_one(Table).show(ChoiceRows(event.choices))
        self.set_class(not event.choices, "-impossible")
        self._hint()
        if event.choices:
            self.query_one(Table).point_at(0)
            self.line.focus()
            if run := self._what_ifs.last:
                self.line.value = run.asked.words
                self.line.action_end()
                self._follow_run(run)

    # ── the line ─────────────────────────────────────────────────────────────────────────────

    @on(Input.Changed)
    def _type(self, event: Input.Changed) -> None:
        """Show what can be chosen again, as soon as another line is typed."""
        if self._run and event.value != self._run.asked.words:
            self._run = None
            self._say(self._about)

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        self._begin(event.value)

    def _begin(self, words: str) -> None:
        """Have a line run, which returns as soon as its process is started."""
        try:
            self._follow_run(self._what_ifs.start(words))
        except StepscopeError as error:
            self._say([Paragraph(str(error), Tone.WARNING), *self._about])

    @on(Table.Chosen)
    def action_take(self) -> None:
        """Put the choice under the cursor into the line."""
        table = self.query_one(Table)
        if table.cursor is not None and isinstance(table.rows, ChoiceRows):
            self.line.value = taken(self.line.value, table.rows.choices[table.cursor].words)
            self.line.action_end()
            self.line.focus()

    # ── the run ──────────────────────────────────────────────────────────────────────────────

    def _follow_run(self, run: Run) -> None:
        self._run = run
        self.line.value = run.asked.words
        self.line.action_end()
        self._show_run(run)
        if run.is_under_way:
            self._follow(run)

    @work(thread=True, exclusive=True, group="follow")
    def _follow(self, run: Run) -> None:
        worker = get_current_worker()
        while run.is_under_way and not worker.is_cancelled:
            self._what_ifs.wait(run, LOOKS_EVERY_S)
            self.post_message(self.Moved(run))

    @on(Moved)
    def _show_moved(self, event: Moved) -> None:
        if event.run is self._run:
            self._show_run(event.run)

    def _show_run(self, run: Run) -> None:
        self._say(run_told(run, self._what_ifs.clock()), is_told=run.came is not None)

    def action_cancel(self) -> None:
        """Cancel the run."""
        self._what_ifs.cancel()
        if self._run:
            self._show_run(self._run)

    async def action_go(self) -> None:
        """Go to the step in which the two runs diverge."""
        if self._run and (came := self._run.came) and came.step is not None:
            await self.run_action(action_of(AtStep(came.step, came.rank or None)))

    # ── the screen ───────────────────────────────────────────────────────────────────────────

    def action_move(self, by: int) -> None:
        """Move between choices; where these give way to what came of it, scroll."""
        if self.has_class("-told"):
            self.query_one("#what-said").scroll_relative(y=by, animate=False)
        else:
            self.query_one(Table).move(by)

    def action_close(self) -> None:
        """Close it."""
        self.dismiss(None)

    def action_begin(self) -> None:
        """Run what is typed."""
        self._begin(self.line.value)

    def _say(self, blocks: Sequence[Shown], *, is_told: bool = False) -> None:
        self.set_class(is_told, "-told")
        self.query_one(Prose).show(blocks)
        self._hint()

    def _hint(self) -> None:
        run, close = self._run, ("esc", "close", "close")
        if run and run.is_under_way:
            hints = [("ctrl+x", "cancel", "cancel"), ("esc", "close, and it goes on", "close")]
        elif run and run.came:
            up = ("↓ ↑", "scroll", "move(1)")
            hints = [("ctrl+g", "go to where they diverge", "go"), up, close]
            hints = hints if run.came.step is not None else hints[1:]
        elif self.line.disabled:
            hints = [close]
        else:
            take = ("tab", "take the choice", "take")
            hints = [("enter", "run it", "begin"), ("↓ ↑", "choice", "move(1)"), take, close]
        self.query_one(Hints).show(hints)
