"""One-line widgets made of pieces of text, some of which can be clicked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.style import Style
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import PANEL, TEXT, ink
from stepscope.app.widths import width_of


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text; clicking it runs `action`, if there is one.

    Pieces next to each other with the same action are shown together or not at all.
    """

    text: str
    style: Style
    action: str = ""


class Bar(Widget):
    """A line with pieces on the left and on the right; where both don't fit, one side gives way."""

    ALLOW_SELECT = False
    surface = PANEL
    left_gives_way = True

    def left(self) -> Sequence[Piece]:
        """Pieces from the left edge on."""
        return ()

    def right(self) -> Sequence[Piece]:
        """Pieces that end at the right edge."""
        return ()

    def placed(self) -> list[tuple[int, Piece]]:
        """Every piece that fits, with the cell where it begins."""
        room = self.size.width
        first, second = (self.right(), self.left())
        if not self.left_gives_way:
            first, second = second, first
        kept = _fitting(first, room)
        given = _fitting(second, room - _width(kept))
        left, right = (given, kept) if self.left_gives_way else (kept, given)
        return [*_from(0, left), *_from(room - _width(right), right)]

    def render_line(self, y: int) -> Strip:
        """Paint the pieces."""
        line = Line(self.size.width, ink(TEXT, self.surface))
        for x, piece in self.placed():
            line.put(x, piece.text, piece.style)
        return line.strip()

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the piece that was clicked."""
        for x, piece in self.placed():
            if piece.action and x <= event.x < x + width_of(piece.text):
                event.stop()
                await self.run_action(piece.action)


def _width(pieces: Sequence[Piece]) -> int:
    return sum(width_of(piece.text) for piece in pieces)


def _fitting(pieces: Sequence[Piece], room: int) -> list[Piece]:
    kept: list[Piece] = []
    for action, group in groupby(pieces, key=lambda piece: piece.action):
        for together in [list(group)] if action else ([piece] for piece in group):
            if _width(kept) + _width(together) > room:
                return kept
            kept += together
    return kept


def _from(x: int, pieces: Sequence[Piece]) -> Iterator[tuple[int, Piece]]:
    for piece in pieces:
        yield x, piece
        x += width_of(piece.text)
