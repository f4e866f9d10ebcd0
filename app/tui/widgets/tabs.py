"""The line with the pages on the left and the legend, which filters when clicked, on the right."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from stepscope.app.tui.actions import PAGES
from stepscope.app.tui.ink import ACCENT, BACKGROUND, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.widgets.text_bar import Bar, Piece


class Tabs(Bar):
    """Which page is open; a click opens another."""

    left_gives_way = False
    page: reactive[str] = reactive("overview")
    legend: reactive[Sequence[Piece]] = reactive((), always_update=True)

    def left(self) -> Sequence[Piece]:
        """A tab for every page, with the key that opens it."""
        return [piece for key, page in enumerate(PAGES, 1) for piece in self._tab(str(key), page)]

    def right(self) -> Sequence[Piece]:
        """The legend, when it fits beside the tabs."""
        return self.legend

    def _tab(self, key: str, page: str) -> list[Piece]:
        action = f"app.page('{page}')"
        if page == self.page:
            return [
                Piece(f" {key}", ink(ACCENT, BACKGROUND, bold=True), action),
                Piece(f" {page.title()} ", ink(TEXT, BACKGROUND, bold=True), action),
            ]
        return [
            Piece(f" {key}", ink(MUTED, PANEL), action),
            Piece(f" {page.title()} ", ink(MUTED, PANEL), action),
        ]
