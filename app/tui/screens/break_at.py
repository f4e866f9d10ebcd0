"""Where to stop: the words that the prompt's `break` takes, looked up in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from stepscope.app.debug.commands.stopping import example_stop
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.sought_hits import NOWHERE, Sought, sought
from stepscope.app.debug.stops import KINDS
from stepscope.app.printable import plain
from stepscope.ingest.errors import StepscopeError


class BreakScreen(ModalScreen[Sought | Literal[""] | None]):
    """Asks for a condition; answers its hits, "" where none was typed, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "close")]

    @dataclass
    class Found(Message):
        """Words were looked up: their hits, or what is wrong with them."""

        words: str
        answer: Sought | StepscopeError

    def __init__(self, debugger: Debugger, words: str = "") -> None:
        super().__init__()
        self._debugger = debugger
        self._words = words

    def compose(self) -> ComposeResult:
        """A line to type in, and below it what is possible or what is wrong."""
        with Vertical(id="search"):
            yield Input(self._words, placeholder="where to stop", select_on_focus=True)
            yield Static(self._possible(), id="break-said", markup=False)

    def _possible(self) -> str:
        forms = [f"  {form:<20}{does}" for kind in KINDS for form, does in kind.usage]
        example = f"for example: {plain(example_stop(self._debugger))}"
        return "\n".join(["it can be", *forms, "", example, "an empty line looks for nothing"])

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self._say("looking …")
            self._find(event.value)
        else:
            self.dismiss("")

    @work(thread=True, exclusive=True)
    def _find(self, words: str) -> None:
        try:
            answer: Sought | StepscopeError = sought(self._debugger, words)
        except StepscopeError as error:
            answer = error
        self.post_message(self.Found(words, answer))

    @on(Found)
    def _answer(self, event: Found) -> None:
        if event.words != self.query_one(Input).value:
            return
        if isinstance(event.answer, StepscopeError):
            self._say(f"{plain(str(event.answer))}\n\n{self._possible()}")
        elif event.answer.is_nowhere:
            self._say(f"{NOWHERE}\n\n{self._possible()}")
        else:
            self.dismiss(event.answer)

    def _say(self, text: str) -> None:
        self.query_one("#break-said", Static).update(text)
