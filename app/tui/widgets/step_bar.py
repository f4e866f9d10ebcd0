"""The line over a step in detail."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.widgets.text_bar import Bar, Piece
from stepscope.app.widths import fit, width_of


class StepBar(Bar):
    """Which step, when, how long, what kind; and buttons for the step before and after."""

    number: reactive[str] = reactive("reading state …")
    about: reactive[str] = reactive("")

    def left(self) -> Sequence[Piece]:
        """Previous, the step, next, and what it is."""
        key = ink(ACCENT, PANEL, bold=True)
        room = self.size.width - width_of(self.number) - 8
        return [
            Piece(" ◀ ", key, "app.step(-1)"),
            Piece(self.number, ink(TEXT, PANEL, bold=True)),
            Piece(" ▶ ", key, "app.step(1)"),
            Piece(" " + fit(self.about, room), ink(MUTED, PANEL)),
        ]
