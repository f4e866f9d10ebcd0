"""Blocks in a terminal: headings, paragraphs and facts, wrapped to a width and scrolled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import assert_never

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from stepscope.app.present.blocks import (
    AtChange,
    AtFinding,
    AtRequest,
    AtSpan,
    AtStep,
    AtTime,
    Block,
    Fact,
    Follow,
    Heading,
    Items,
    Link,
    Links,
    Paragraph,
    RulePage,
    Runs,
    Swatch,
    Table,
    Target,
    Title,
)  # fmt: skip
from stepscope.app.present.plain_text import table_lines
from stepscope.app.tui.cells import strip_of
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, RAISED, TEXT, TONES, ink, readable_on
from stepscope.app.tui.widgets.scrolling import Scrolling
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.widths import fit, width_of, wrap

LEAST_LABELS, MOST_LABELS = 14, 18
"""Cells for the names of facts; the most only where a pane is wide."""
LEAST_WRAPPED = 24
"""Cells that the last text of a table needs to go on below."""
HEADS = (None, None)
"""The lines of a table above its rows."""


@dataclass(frozen=True, slots=True)
class Painted:
    """A line of pieces made elsewhere, cut where the pane ends."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """Pieces one after another with two cells between, as many on a line as fit."""

    pieces: tuple[Piece, ...]


Shown = Block | Painted | Flow
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
            yield from _table(block, width)
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


def _table(block: Table, width: int) -> Iterator[Pieces]:
    if block.title:
        yield from _heading(Heading(block.title), width)
    told = [*table_lines(replace(block, title="", is_ruled=True))]
    heads = [*HEADS * bool(any(block.columns))]
    swatches = [row[0] if isinstance(row[0], Swatch) else None for row in block.rows]
    actions = [*["" for _ in heads], *map(action_of, block.leads)]
    for line, swatch, action in zip_longest(told, [*heads, *swatches], actions):
        mark = [] if swatch is None else [_mark(swatch)]
        first, *more = _with_last_wrapped(line, width)
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
    room = max((width - label_width) // max(len(fact.values), 1), 1)
    # Columns need a cell between them; one value alone may use the whole width.
    inner = room - 1 if len(fact.values) > 1 else room
    columns = [wrap(value, max(inner, 1)) or [""] for value in fact.values]
    surface = RAISED if fact.is_selected else PANEL
    name = ink(ACCENT if fact.is_selected else MUTED, surface)
    labels, action = wrap(fact.label, label_width - 1), action_of(fact.to)
    for row in range(max(len(labels), *map(len, columns))):
        label = labels[row] if row < len(labels) else ""
        texts = [column[row] if row < len(column) else "" for column in columns]
        shown = "".join(_padded(text, room) for text in texts)
        yield [
            Piece(_padded(label, label_width), name, action),
            Piece(
                shown if fact.is_selected else shown.rstrip(),
                ink(TONES[fact.tone], surface),
                action,
            ),
        ]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def _link(link: Link) -> Iterator[Piece]:
    yield Piece(link.text, ink(ACCENT, PANEL), action_of(link.to))
    yield Piece("  ", ink(TEXT, PANEL))


def action_of(to: Target | None) -> str:
    """What a click on something that leads there runs."""
    action = ""
    match to:
        case RulePage(code):
            action = f"app.explain({code!r})"
        case AtStep(step, rank):
            action = f"app.at_step({step}, {rank})"
        case AtChange(seq, rank=rank):
            action = f"app.at_change({seq}, {rank})"
        case AtFinding(index):
            action = f"app.jump({index})"
        case Follow(index):
            action = f"focused.follow({index})"
        case AtRequest(rank, request):
            action = f"app.request({rank}, {request!r})"
        case AtSpan(lane, since_ns):
            action = f"app.at_span({lane}, {since_ns})"
        case AtTime(since_ns, at):
            action = f"app.at_time({since_ns}, {at})"
        case None:
            action = ""
    return action


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
