"""Blocks as lines of plain text: whatever they hold, a line is a line and steers no terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stepscope.app.present.blocks import (
    Block,
    Fact,
    Heading,
    Items,
    Links,
    Paragraph,
    RulePage,
    Runs,
    Table,
    Title,
)  # fmt: skip
from stepscope.app.printable import plain
from stepscope.app.text_table import format_table
from stepscope.app.widths import padded

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
        case Table(columns, rows):
            yield from format_table(columns, rows)
        case Links(choices):
            rules = [link.to.code for link in choices if isinstance(link.to, RulePage)]
            yield from (f"stepscope explain {plain(code)}" for code in rules)
        case _:
            yield plain(_text(block)).rstrip()


def _text(block: Title | Heading | Paragraph | Runs) -> str:
    match block:
        case Heading(text, note):
            return f"{text} {note}"
        case Runs(parts):
            return "".join(text for text, _ in parts)
        case Title(text) | Paragraph(text):
            return text
