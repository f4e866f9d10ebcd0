"""The line of keys at the bottom; every entry can be clicked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.reactive import reactive

from stepscope.app.tui.actions import Action, Hint, hints
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, ink
from stepscope.app.tui.widgets.text_bar import Bar, Piece

ALWAYS = ("help", "quit")


class Footer(Bar):
    """The keys of the page on the left, help and quit always on the right."""

    own: reactive[Sequence[Action]] = reactive(())

    def __init__(self, shared: Sequence[Action], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._shared = shared

    def left(self) -> Sequence[Piece]:
        """What the page can do."""
        return [
            piece
            for hint in hints(self.own, self._shared)
            if hint.label not in ALWAYS
            for piece in _pieces(hint)
        ]

    def right(self) -> Sequence[Piece]:
        """Help and quit."""
        return [
            piece
            for hint in hints(self.own, self._shared)
            if hint.label in ALWAYS
            for piece in _pieces(hint)
        ]


def _pieces(hint: Hint) -> Iterator[Piece]:
    yield Piece(f" {hint.keys}", ink(ACCENT, PANEL, bold=True), hint.action)
    yield Piece(f" {hint.label} ", ink(MUTED, PANEL), hint.action)
