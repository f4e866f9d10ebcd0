"""Blocks as lines of plain text: whatever they hold, a line is a line and steers no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from stepscope.app.present.blocks import (
    Block,
    Fact,
    Heading,
    Items,
    Links,
    Paragraph,
    RulePage,
    Runs,
    Swatch,
    Table,
    Title,
)  # fmt: skip
from stepscope.app.printable import plain
from stepscope.app.text_table import format_cell
from stepscope.app.widths import aligned, padded

LABEL_WIDTH = 10


def lines(blocks: Iterable[Block], label_width: int = LABEL_WIDTH) -> list[str]:
    """The blocks from top to bottom; labels take `label_width` columns where they fit."""
    return [line for block in blocks for line in _lines(block, label_width)]


def _lines(block: Block, width: int) -> Iterator[str]:
    match block:
        case Fact(label, values):
            yield f"{padded(plain(label), width)} {' → '.join(map(plain, values))}"
        case Items(told):
            yield from (f"- {plain(line)}" for line in told)
        case Table():
            yield from table_lines(block)
        case Links(choices):
            rules = [link.to.code for link in choices if isinstance(link.to, RulePage)]
            yield from (f"stepscope explain {plain(code)}" for code in rules)
        case Title() | Heading() | Paragraph() | Runs():
            yield plain(_text(block)).rstrip()
        case _:
            assert_never(block)


def table_lines(table: Table) -> Iterator[str]:
    """A table under its title, a line a row; what was left out is counted below."""
    if table.title:
        yield plain(table.title)
    head, *cells = cell_texts(table)
    drawn = list(aligned(head, cells, table.stands_right(), ruled=table.is_ruled))
    yield from drawn[0 if any(table.columns) else 1 + table.is_ruled :]
    if table.num_more:
        yield f"and {table.num_more:,} more"


def cell_texts(table: Table) -> list[list[str]]:
    """What stands in a table: the names of its columns, and below them its rows."""
    head = [plain(name) for name in table.columns]
    return [head, *([_cell(value) for value in row] for row in table.rows)]


def _cell(value: object) -> str:
    if isinstance(value, Swatch):
        return plain(value.glyph)
    return plain(value) if isinstance(value, str) else format_cell(value)


def _text(block: Title | Heading | Paragraph | Runs) -> str:
    match block:
        case Heading(text, note):
            return f"{text} {note}"
        case Runs(parts):
            return "".join(text for text, _ in parts)
        case Title(text) | Paragraph(text):
            return text
