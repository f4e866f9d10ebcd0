"""Something long to read, over whatever is open."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen


class ScrolledScreen(ModalScreen[None]):
    """A screen of one pane, with the id `SCROLLS`, that the usual keys scroll."""

    SCROLLS: ClassVar[str]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "scroll(1)", "down"),
        Binding("k,up", "scroll(-1)", "up"),
        Binding("pagedown,space", "scroll(10)", "a page down"),
        Binding("pageup", "scroll(-10)", "a page up"),
    ]

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.query_one(f"#{self.SCROLLS}").scroll_relative(y=lines, animate=False)
