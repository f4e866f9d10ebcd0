"""A line of words that the prompt takes behind a command, looked up in a thread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from stepscope.app.debug.commands.stopping import example_stop
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.shown.sought_hits import Sought, sought
from stepscope.app.debug.shown.value_over_run import FORMS, ValueOverRun, value_over_run
from stepscope.app.debug.stops import KINDS
from stepscope.app.printable import plain
from stepscope.ingest.errors import StepscopeError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """What is asked for, what is `possible`, and how words are looked up.

    `look` gives a line where the words mean nothing here, and raises StepscopeError for wrong ones.
    """

    placeholder: str
    possible: str
    look: Callable[[str], T | str]


def where_to_stop(debugger: Debugger) -> Question[Sought]:
    """What the prompt's `break` takes."""

    def look(words: str) -> Sought | str:
        found = sought(debugger, words)
        return found.stop.nowhere if found.is_nowhere else found

    forms = [f"  {form:<20}{does}" for kind in KINDS for form, does in kind.usage]
    example = f"for example: {plain(example_stop(debugger))}"
    possible = "\n".join(["it can be", *forms, "", example, "an empty line looks for nothing"])
    return Question("where to stop", possible, look)


def what_to_draw(debugger: Debugger) -> Question[ValueOverRun]:
    """What the prompt's `value` takes."""
    forms = [f"  {form:<20}{does}" for form, does in FORMS]
    possible = "\n".join(["it can be", *forms, "", "an empty line draws nothing"])
    return Question("a value over the run", possible, lambda words: value_over_run(debugger, words))


class AskScreen(ModalScreen[T | Literal[""] | None]):
    """Asks a question; answers what was found, "" where nothing was typed, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", "close")]

    @dataclass
    class Found(Message):
        """Words were looked up: what they mean, or a line where they mean nothing."""

        words: str
        answer: Any

    def __init__(self, question: Question[T], words: str = "") -> None:
        super().__init__()
        self._question = question
        self._words = words

    def compose(self) -> ComposeResult:
        """A line to type in, and below it what is possible or what is wrong."""
        with Vertical(id="search"):
            yield Input(self._words, placeholder=self._question.placeholder, select_on_focus=True)
            yield Static(self._question.possible, id="ask-said", markup=False)

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
            answer: T | str = self._question.look(words)
        except StepscopeError as error:
            answer = str(error)
        self.post_message(self.Found(words, answer))

    @on(Found)
    def _answer(self, event: Found) -> None:
        if event.words != self.query_one(Input).value:
            return
        if isinstance(event.answer, str):
            self._say(f"{plain(event.answer)}\n\n{self._question.possible}")
        else:
            self.dismiss(event.answer)

    def _say(self, text: str) -> None:
        self.query_one("#ask-said", Static).update(text)
