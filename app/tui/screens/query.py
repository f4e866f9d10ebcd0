"""A line for a query: completion with Tab, queries that were asked before with the arrows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from stepscope.app.kept.queries import asked_before
from stepscope.app.printable import plain
from stepscope.app.queries.asked_query import EXAMPLE, Answer, answer
from stepscope.app.queries.query_words import Completion, names_of, query_completions
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.trace import Trace

MOST_SHOWN = 12
KEYS = "tab completes · ↑ ↓ asked before · enter runs · esc closes"


class QueryScreen(ModalScreen[Answer | None]):
    """Asks the tables of a trace; answers what the query gave, or nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "close"),
        Binding("tab", "complete(1)", "complete", priority=True),
        Binding("shift+tab", "complete(-1)", "complete", priority=True),
        Binding("up", "recall(1)", "asked before", priority=True),
        Binding("down", "recall(-1)", "asked after", priority=True),
    ]

    @dataclass
    class Answered(Message):
        """A query was run: what it gave, or why it cannot be."""

        query: str
        given: Answer | StepscopeError

    def __init__(self, trace: Trace, query: str = "") -> None:
        super().__init__()
        self._trace, self._first = trace, query or EXAMPLE
        self._names = names_of(trace)
        self._asked = asked_before()
        self._place, self._draft = -1, ""
        self._words: list[Completion] = []
        self._chosen = -1
        self._own = ""
        """The text that was put into the line here, and not typed."""

    def compose(self) -> ComposeResult:
        """A line to type in, and below it what may follow or what is wrong."""
        with Vertical(id="search"):
            yield Input(self._first, placeholder="a query in SQL", select_on_focus=False)
            yield Static("", id="ask-said", markup=False)

    def on_mount(self) -> None:
        """Say what there is to ask, with the cursor behind the query."""
        self._say(f"tables: {', '.join(self._names)}")
        line = self.query_one(Input)
        line.cursor_position = len(line.value)

    @on(Input.Changed)
    def _suggest(self, event: Input.Changed) -> None:
        if event.value == self._own:
            return
        self._place, self._chosen, self._own = -1, -1, ""
        line = self.query_one(Input)
        at = line.cursor_position
        self._words = query_completions(self._names, event.value[:at], event.value[at:])
        self._show_words()

    def _show_words(self) -> None:
        first = max(self._chosen - MOST_SHOWN + 1, 0)
        lines = [
            f"{'▸' if at == self._chosen else ' '} {each.word:<22} {each.meaning}"
            for at, each in enumerate(self._words)
        ]
        shown = lines[first : first + MOST_SHOWN]
        more = len(lines) - first - len(shown)
        self._say("\n".join([*shown, *([f"  and {more} more"] if more > 0 else [])]))

    def action_complete(self, by: int) -> None:
        """Put the next of the words that may follow into the line, in place of the one before."""
        if not self._words:
            return
        line = self.query_one(Input)
        before, after = line.value[: line.cursor_position], line.value[line.cursor_position :]
        gone = len(self._words[self._chosen].word) if self._chosen >= 0 else 0
        begun = gone or self._words[0].replaces
        self._chosen = (
            (self._chosen + by) % len(self._words) if gone or by > 0 else -1 % len(self._words)
        )
        text = before[: len(before) - begun] + self._words[self._chosen].word
        self._put(text + after, len(text))
        self._show_words()

    def action_recall(self, by: int) -> None:
        """Show a query that was asked before, or what was being typed."""
        there = min(max(self._place + by, -1), len(self._asked) - 1)
        if there == self._place:
            return
        if self._place < 0:
            self._draft = self.query_one(Input).value
        self._place, self._words, self._chosen = there, [], -1
        text = self._draft if there < 0 else self._asked[there]
        self._put(" ".join(text.split("\n")), len(text))

    def _put(self, text: str, cursor: int) -> None:
        line = self.query_one(Input)
        self._own = line.value = text
        line.cursor_position = cursor

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        if event.value.strip():
            self._say("asking …")
            self._ask(event.value)

    @work(thread=True, exclusive=True)
    def _ask(self, query: str) -> None:
        try:
            given: Answer | StepscopeError = answer(self._trace, query)
        except StepscopeError as error:
            given = error
        self.post_message(self.Answered(query, given))

    @on(Answered)
    def _take(self, event: Answered) -> None:
        if event.query != self.query_one(Input).value:
            return
        if isinstance(event.given, StepscopeError):
            self._say(plain(str(event.given)))
        else:
            self.dismiss(event.given)

    def _say(self, text: str) -> None:
        self.query_one("#ask-said", Static).update(text + f"\n\n{KEYS}" * bool(text))
