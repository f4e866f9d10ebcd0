"""The page of a rule, over whatever is open."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Markdown

from stepscope.analyzers.check.explain import explain


class ExplainScreen(ModalScreen[None]):
    """What a rule finds, why it hurts, how to fix it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,e,enter", "dismiss", "close"),
        Binding("j,down", "scroll(1)", "down"),
        Binding("k,up", "scroll(-1)", "up"),
        Binding("pagedown,space", "scroll(10)", "a page down"),
        Binding("pageup", "scroll(-10)", "a page up"),
    ]

    def __init__(self, code: str) -> None:
        super().__init__()
        self._page = explain(code)

    def compose(self) -> ComposeResult:
        """The page, which is our own text and not a trace's."""
        with VerticalScroll(id="page"):
            yield Markdown(self._page, open_links=False)

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one("#page").scroll_relative(y=lines, animate=False)
