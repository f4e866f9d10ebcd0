"""Blocks in a terminal: headings, paragraphs and facts, wrapped to a width and scrolled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import assert_never

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from stepscope.app.present.blocks import (
    Block,
    Fact,
    Heading,
    Items,
    Link,
    Links,
    Paragraph,
    Runs,
    Table,
    Title,
)  # fmt: skip
from stepscope.app.tui.cells import strip_of
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, RAISED, TEXT, TONES, ink
from stepscope.app.tui.widgets.in_prose.side_columns import beside, column_width
from stepscope.app.tui.widgets.in_prose.table_pieces import table_pieces
from stepscope.app.tui.widgets.in_prose.target_action import action_of
from stepscope.app.tui.widgets.scrolling import Scrolling
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.widths import fit, width_of, wrap

LEAST_LABELS, MOST_LABELS = 14, 18
"""Cells for the names of facts; the most only where a pane is wide."""

ARROW = "→"
"""Between what was before and what is after."""


@dataclass(frozen=True, slots=True)
class Painted:
    """A line of pieces made elsewhere, cut where the pane ends."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """Pieces one after another with two cells between, as many on a line as fit."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Beside:
    """Parts one below the other, in columns where there is room for several."""

    parts: tuple[tuple[Block | Painted | Flow, ...], ...]


Shown = Block | Painted | Flow | Beside
"""Neutral blocks, and what is painted for a terminal alone."""
Pieces = list[Piece]


def lay_out(blocks: Sequence[Shown], width: int) -> list[Pieces]:
    """Every line of the blocks at a width in cells."""
    labels = _label_width([each.label for each in blocks if isinstance(each, Fact)], width)
    return [line for block in blocks for line in _lines(block, width, labels)]


def _label_width(labels: Sequence[str], width: int) -> int:
    """Cells for the names of facts: as few as none is broken in, or as there may be."""
    most = max(LEAST_LABELS, min(MOST_LABELS, width * 2 // 5))
    parts = [part for label in labels for part in wrap(label, most - 1)]
    return max(LEAST_LABELS, 1 + max(map(width_of, parts), default=0))


def _lines(block: Shown, width: int, labels: int) -> Iterator[Pieces]:
    match block:
        case Painted(pieces):
            yield list(pieces)
        case Flow():
            yield from _flow(block, width)
        case Beside(parts):
            room = column_width(width)
            yield from beside([lay_out(part, room) for part in parts], width)
        case _:
            yield from _block(block, width, labels)


def _block(block: Block, width: int, labels: int) -> Iterator[Pieces]:
    match block:
        case Title():
            yield from _title(block, width)
        case Heading():
            yield from _heading(block, width)
        case Paragraph():
            yield from _paragraph(block, width)
        case Fact():
            yield from _fact(block, width, labels)
        case Items():
            yield from _items(block, width)
        case Runs():
            yield from _runs(block)
        case Links():
            yield from _links(block)
        case Table():
            if block.title:
                yield from _heading(Heading(block.title), width)
            yield from table_pieces(block, width)
        case _:
            assert_never(block)


def _title(block: Title, width: int) -> Iterator[Pieces]:
    style = ink(TONES[block.tone], PANEL, bold=True)
    yield from ([Piece(line, style)] for line in wrap(block.text, width))


def _heading(block: Heading, width: int) -> Iterator[Pieces]:
    yield []
    head = Piece(fit(block.text.upper(), width), ink(MUTED, PANEL, bold=True))
    yield [head, Piece(fit(f" {block.note}", width - width_of(head.text)), ink(MUTED, PANEL))]


def _paragraph(block: Paragraph, width: int) -> Iterator[Pieces]:
    style = ink(TONES[block.tone], PANEL)
    yield from ([Piece(line, style)] for line in wrap(block.text, width))


def _items(block: Items, width: int) -> Iterator[Pieces]:
    for line in block.lines:
        yield from _paragraph(Paragraph(f"· {line}"), width)


def _links(block: Links) -> Iterator[Pieces]:
    yield []
    yield [piece for link in block.choices for piece in _link(link)]


def _runs(block: Runs) -> Iterator[Pieces]:
    action = action_of(block.to)
    yield [Piece(text, ink(TONES[tone], PANEL), action) for text, tone in block.parts]


def _flow(block: Flow, width: int) -> Iterator[Pieces]:
    line: Pieces = []
    used = 0
    for piece in block.pieces:
        needed = width_of(piece.text) + 2
        if line and used + needed - 2 > width:
            yield line
            line, used = [], 0
        line += [piece, Piece("  ", piece.style)]
        used += needed
    yield line


def _fact(fact: Fact, width: int, label_width: int) -> Iterator[Pieces]:
    room = max(width - label_width, 1)
    texts = _values(fact.values, room)
    surface = RAISED if fact.is_selected else PANEL
    name = ink(ACCENT if fact.is_selected else MUTED, surface)
    labels, action = wrap(fact.label, label_width - 1), action_of(fact.to)
    for label, text in zip_longest(labels, texts, fillvalue=""):
        yield [
            Piece(_padded(label, label_width), name, action),
            Piece(
                _padded(text, room) if fact.is_selected else text,
                ink(TONES[fact.tone], surface),
                action,
            ),
        ]


def _values(values: Sequence[str], room: int) -> list[str]:
    """What a fact tells, one value after another where they fit on a line, else one a line."""
    lines = wrap(f" {ARROW} ".join(values), room)
    if len(lines) > 1 and len(values) > 1:
        later = [f"{ARROW} {value}" for value in values[1:]]
        lines = [line for each in (values[0], *later) for line in wrap(each, room)]
    return lines or [""]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def _link(link: Link) -> Iterator[Piece]:
    yield Piece(link.text, ink(ACCENT, PANEL), action_of(link.to))
    yield Piece("  ", ink(TEXT, PANEL))


class Prose(Scrolling):
    """Shows blocks of text; scrolls by wheel and by its bar."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.blocks: Sequence[Shown] = ()
        self._lines: list[Pieces] = []
        self._width = 1

    def show(self, blocks: Sequence[Shown], *, keep_place: bool = False) -> None:
        """Show other blocks, from the top unless the place is to be kept."""
        if blocks != self.blocks:
            self.blocks = blocks
            self._lay_out()
            if not keep_place:
                self.scroll_to(y=0, animate=False)

    @property
    def text(self) -> str:
        """Everything it shows, line by line, as plain text."""
        return "\n".join("".join(piece.text for piece in line) for line in self._lines)

    def on_resize(self) -> None:
        """Wrap again."""
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Paint a line."""
        runs = ((piece.text, piece.style) for piece in self._line_at(y))
        return strip_of(runs, self._width, ink(TEXT, PANEL))

    async def on_click(self, event: events.Click) -> None:
        """Run the action of the piece that was clicked."""
        offset = event.get_content_offset(self)
        x = 0
        for piece in self._line_at(offset.y) if offset else ():
            end = x + width_of(piece.text)
            if piece.action and offset and x <= offset.x < end:
                event.stop()
                await self.run_action(piece.action)
            x = end

    def _line_at(self, y: int) -> Pieces:
        index = y + self.scroll_offset.y
        return self._lines[index] if index < len(self._lines) else []

    def _lay_out(self) -> None:
        before, self._lines = self._lines, lay_out(self.blocks, self.room)
        size, self._width = Size(self.room, len(self._lines)), self.room
        if size.width != self.virtual_size.width or self.styles.auto_dimensions:
            self.virtual_size = size
            self.refresh()
            return
        # Set as usual, a virtual size has all of the screen laid out anew and the pane drawn whole.
        self.set_reactive(Prose.virtual_size, size)
        self._scroll_update(size)
        for y, (was, line) in enumerate(zip_longest(before, self._lines)):
            if was != line:
                self.refresh_lines(y)
