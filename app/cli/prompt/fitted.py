"""Blocks as lines of plain text of a given width: what is long goes on below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from stepscope.app.present.blocks import Block, Table
from stepscope.app.present.plain_text import cell_texts, lines
from stepscope.app.printable import plain
from stepscope.app.widths import fit, padded, width_of, wrap

GAP = 2
LEAST = 8
"""Cells below which a column of text is rather left out, and named under the table."""
MOST_LINES = 3
"""Of one row: a long text in each of many rows would hide how many there are."""


def fitted(blocks: Iterable[Block], width: int) -> list[str]:
    """The blocks from top to bottom, each line in at most `width` cells where words allow it."""
    return [line for block in blocks for line in _lines(block, width)]


def _lines(block: Block, width: int) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _table(block, width)
        return
    for line in lines([block]):
        yield from _wrapped(line, width)


def _wrapped(line: str, width: int) -> Iterator[str]:
    """A line, and what does not fit below it, further to the right than its begin."""
    if width_of(line) <= width:
        yield line
        return
    indent = len(line) - len(line.lstrip())
    first, *rest = wrap(line, max(width - indent - GAP, 1))
    yield " " * indent + first
    yield from (" " * (indent + GAP) + more for more in rest)


def _table(table: Table, width: int) -> Iterator[str]:
    head, *rows = cell_texts(table)
    to_right = table.stands_right()
    widths = _widths([*zip(head, *rows, strict=True)], to_right, width)
    if table.title:
        yield plain(table.title)
    if any(table.columns):
        yield from _row(head, widths, to_right)
        if table.is_ruled:
            yield (" " * GAP).join("─" * each for each in widths)
    for row in rows:
        yield from _row(row, widths, to_right)
    if table.num_more:
        yield f"and {table.num_more:,} more"
    if lacking := head[len(widths) :]:
        yield from _wrapped(f"too narrow for {', '.join(lacking)}", width)


def _widths(columns: Sequence[Sequence[str]], to_right: Sequence[bool], width: int) -> list[int]:
    """What each column takes: texts share what numbers leave; who has no room is left out.

    Texts are broken between words as long as that is enough, so that names stay whole.
    """
    widest = [max(map(width_of, column)) for column in columns]
    words = [max(map(_longest_word, column)) for column in columns]
    for num in range(len(widest), 0, -1):
        free = width - GAP * (num - 1)
        for whole in (words, [0] * num):
            for most in range(max(LEAST, *widest[:num]), LEAST - 1, -1):
                each = [
                    taken if right else min(taken, max(most, word))
                    for taken, right, word in zip(widest[:num], to_right, whole, strict=False)
                ]
                if sum(each) <= free:
                    return each
    return [min(widest[0], width)] if widest else []


def _longest_word(cell: str) -> int:
    return max(map(width_of, cell.split()), default=0)


def _row(cells: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> Iterator[str]:
    texts = [_broken(cell, width) for cell, width in zip(cells, widths, strict=False)]
    for parts in zip_longest(*texts, fillvalue=""):
        yield (" " * GAP).join(map(padded, parts, widths, to_right)).rstrip()


def _broken(cell: str, width: int) -> list[str]:
    if width_of(cell) <= width:
        return [cell]
    blanks = " " * min(len(cell) - len(cell.lstrip()), width // 2)
    parts = [blanks + part for part in wrap(cell, width - len(blanks))]
    shown = parts[:MOST_LINES]
    if len(parts) > len(shown):
        shown[-1] = fit(f"{shown[-1]} {parts[MOST_LINES]}", width)
    return shown
