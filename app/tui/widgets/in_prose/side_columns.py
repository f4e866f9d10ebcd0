"""Parts of a text beside each other where a pane is wide: in their order, down and then across."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.app.tui.ink import PANEL, TEXT, ink
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.widths import width_of

Lines = Sequence[list[Piece]]
LEAST, GAP = 80, 4
"""Cells that a column has at least, and between two."""


def column_width(width: int) -> int:
    """How wide each of the columns is that a pane of `width` cells has room for."""
    number = _number(width)
    return (width - GAP * (number - 1)) // number


def beside(parts: Sequence[Lines], width: int) -> Iterator[list[Piece]]:
    """The lines of parts, which are as wide as `column_width` says, in columns of like height."""
    room = column_width(width)
    columns = _divided(parts, _number(width))
    for at in range(max((len(column) for column in columns), default=0)):
        line: list[Piece] = []
        used = 0
        for place, column in enumerate(columns):
            own = column[at] if at < len(column) else []
            blanks = place * (room + GAP) - used
            line += [Piece(" " * blanks, ink(TEXT, PANEL)), *own] if blanks else own
            used += blanks + sum(width_of(piece.text) for piece in own)
        yield line


def _number(width: int) -> int:
    return max((width + GAP) // (LEAST + GAP), 1)


def _divided(parts: Sequence[Lines], number: int) -> list[list[list[Piece]]]:
    """The parts in at most so many columns, of which the highest is as low as it can be."""
    heights = [len(part) for part in parts]
    most = max([*heights, -(-sum(heights) // number)], default=0)
    while True:
        columns: list[list[list[Piece]]] = [[]]
        for part in parts:
            if columns[-1] and len(columns[-1]) + len(part) > most:
                columns.append([])
            columns[-1] += part
        if len(columns) <= number:
            return columns
        most += 1
