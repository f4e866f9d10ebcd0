"""The line with the pages on the left and the legend, which filters when clicked, on the right."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from stepscope.app.present.tab import Tab, numbered
from stepscope.app.tui.ink import ACCENT, BACKGROUND, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.widgets.text_bar import Bar, Piece


class Tabs(Bar):
    """Which page is open; a click opens another."""

    left_gives_way = False
    page: reactive[str] = reactive("")
    legend: reactive[Sequence[Piece]] = reactive((), always_update=True)

    def __init__(self, tabs: Sequence[Tab], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._tabs = tabs
        self.page = tabs[0].name

    def left(self) -> Sequence[Piece]:
        """A tab for every page, with the key that opens it."""
        return [piece for key, tab in numbered(self._tabs) for piece in self._tab(key, tab)]

    def right(self) -> Sequence[Piece]:
        """The legend, when it fits beside the tabs."""
        return self.legend

    def _tab(self, key: str, tab: Tab) -> list[Piece]:
        action = f"app.page('{tab.name}')"
        if tab.name == self.page:
            return [
                Piece(f" {key}", ink(ACCENT, BACKGROUND, bold=True), action),
                Piece(f" {tab.label} ", ink(TEXT, BACKGROUND, bold=True), action),
            ]
        return [
            Piece(f" {key}", ink(MUTED, PANEL), action),
            Piece(f" {tab.label} ", ink(MUTED, PANEL), action),
        ]
