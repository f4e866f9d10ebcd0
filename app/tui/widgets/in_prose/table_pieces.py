"""A table of a text as lines of a terminal, however narrow the place is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from stepscope.app.present.blocks import Swatch, Table
from stepscope.app.present.plain_text import cell_texts, table_lines
from stepscope.app.tui.ink import ACCENT, PANEL, TEXT, ink, readable_on
from stepscope.app.tui.widgets.in_prose.target_action import action_of
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.widths import fit, fit_middle, width_of, wrap

LEAST_WRAPPED = 24
"""Cells that the last text of a table needs to go on below."""
LEAST_NAME = 8
"""Cells that are left to names where numbers stand beside them."""
BETWEEN = 2
"""Blanks between two columns."""
HEADS = (None, None)
"""The lines of a table above its rows."""


def table_pieces(table: Table, width: int) -> Iterator[list[Piece]]:
    """The lines of a table, without its title; numbers stay, and names lose their middles."""
    block = narrowed(table, width)
    told = [*table_lines(replace(block, title="", is_ruled=True))]
    heads = [*HEADS * bool(any(block.columns))]
    swatches = [row[0] if isinstance(row[0], Swatch) else None for row in block.rows]
    actions = [*["" for _ in heads], *map(action_of, block.leads)]
    rule = len(heads) - 1
    for place, (line, swatch, action) in enumerate(zip_longest(told, [*heads, *swatches], actions)):
        mark = [] if swatch is None else [_mark(swatch)]
        first, *more = [line[:width]] if place == rule else _with_last_wrapped(line, width)
        yield [*mark, *_leading(first[len(mark) :], action or "")]
        yield from ([Piece(each, ink(TEXT, PANEL), action or "")] for each in more)


def _with_last_wrapped(line: str, width: int) -> list[str]:
    """A line of a table; of one that is too wide, the last text goes on below where it began."""
    start = line.rstrip().rfind("  ") + 2
    if width_of(line) <= width or width - width_of(line[:start]) < LEAST_WRAPPED:
        return [fit(line, width)]
    indent = width_of(line[:start])
    first, *more = wrap(line[start:].rstrip(), width - indent)
    return [line[:start] + first, *(" " * indent + each for each in more)]


def _leading(line: str, action: str) -> Iterator[Piece]:
    """A line of a table; of one that leads somewhere, the first text looks like a link."""
    end = line.find("  ", len(line) - len(line.lstrip())) if action else 0
    name = line if end < 0 else line[:end]
    yield from ([Piece(name, ink(ACCENT, PANEL), action)] if name else [])
    yield Piece(line[len(name) :], ink(TEXT, PANEL), action)


def _mark(swatch: Swatch) -> Piece:
    return Piece(swatch.glyph, ink(readable_on(swatch.colour), swatch.colour))


def narrowed(table: Table, width: int) -> Table:
    """The table with lines of at most `width` cells, as far as shorter names can do it.

    Of one that ends in texts nothing is taken: the last of them goes on in a line below.
    """
    stands_right = table.stands_right()
    if not table.rows or not stands_right[-1]:
        return table
    widths = [max(map(width_of, column)) for column in zip(*cell_texts(table), strict=True)]
    over = sum(widths) + BETWEEN * (len(widths) - 1) - width
    names = [at for at, is_right in enumerate(stands_right) if not is_right]
    if over <= 0 or not names:
        return table
    at = max(names, key=lambda place: widths[place])
    room = max(widths[at] - over, LEAST_NAME)
    rows = [
        (*row[:at], fit_middle(name, room) if isinstance(name, str) else name, *row[at + 1 :])
        for row in table.rows
        for name in (row[at],)
    ]
    return replace(table, rows=tuple(rows))
