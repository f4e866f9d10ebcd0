"""The page of a rule, over whatever is open."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Markdown

from stepscope.analyzers.check.explain import explain
from stepscope.app.tui.screens.scrolled import ScrolledScreen


class ExplainScreen(ScrolledScreen):
    """What a rule finds, why it hurts, how to fix it."""

    SCROLLS = "page"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,e,enter", "dismiss", "close"),
    ]

    def __init__(self, code: str) -> None:
        super().__init__()
        self._page = explain(code)

    def compose(self) -> ComposeResult:
        """The page, which is our own text and not a trace's."""
        with VerticalScroll(id="page"):
            yield Markdown(self._page, open_links=False)
