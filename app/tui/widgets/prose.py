"""A pane of headings, paragraphs and facts, wrapped to its width and scrolled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from textual import events
from textual.geometry import Size
from textual.strip import Strip

from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, RAISED, TEXT, ink
from stepscope.app.tui.widgets.scrolling import Scrolling
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.widths import fit, width_of, wrap

LABEL_WIDTH = 14


@dataclass(frozen=True, slots=True)
class Title:
    """What the pane is about."""

    text: str
    colour: str = TEXT


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of a part, with a blank line above; `note` may be a trace's text and stays as is."""

    text: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Text as wide as the pane."""

    text: str
    colour: str = TEXT


@dataclass(frozen=True, slots=True)
class Fact:
    """A label and values beside it, in columns of equal width when there are several."""

    label: str
    values: tuple[str, ...]
    colour: str = TEXT
    action: str = ""
    is_selected: bool = False


@dataclass(frozen=True, slots=True)
class Links:
    """Things to click: pairs of a text and an action."""

    choices: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Painted:
    """A line of pieces made elsewhere, cut where the pane ends."""

    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """Pieces one after another with two cells between, as many on a line as fit."""

    pieces: tuple[Piece, ...]


Block = Title | Heading | Paragraph | Fact | Links | Painted | Flow
Pieces = list[Piece]


def lay_out(blocks: Sequence[Block], width: int) -> list[Pieces]:
    """Every line of the blocks at a width in cells."""
    return [line for block in blocks for line in _lines(block, width)]


def _lines(block: Block, width: int) -> Iterator[Pieces]:
    match block:
        case Title(text, colour):
            yield from ([Piece(line, ink(colour, PANEL, bold=True))] for line in wrap(text, width))
        case Heading(text, note):
            yield []
            head = Piece(fit(text.upper(), width), ink(MUTED, PANEL, bold=True))
            yield [head, Piece(fit(f" {note}", width - width_of(head.text)), ink(MUTED, PANEL))]
        case Paragraph(text, colour):
            yield from ([Piece(line, ink(colour, PANEL))] for line in wrap(text, width))
        case Fact():
            yield from _fact(block, width)
        case Links(choices):
            yield []
            yield [each for text, action in choices for each in _link(text, action)]
        case Painted(pieces):
            yield list(pieces)
        case Flow(pieces):
            yield from _flow(pieces, width)


def _fact(fact: Fact, width: int) -> Iterator[Pieces]:
    room = max((width - LABEL_WIDTH) // max(len(fact.values), 1), 1)
    # Columns need a cell between them; one value alone may use the whole width.
    inner = room - 1 if len(fact.values) > 1 else room
    columns = [wrap(value, max(inner, 1)) or [""] for value in fact.values]
    surface = RAISED if fact.is_selected else PANEL
    name = ink(ACCENT if fact.is_selected else MUTED, surface)
    labels = wrap(fact.label, LABEL_WIDTH - 1)
    for row in range(max(len(labels), *map(len, columns))):
        label = labels[row] if row < len(labels) else ""
        texts = [column[row] if row < len(column) else "" for column in columns]
        shown = "".join(_padded(text, room) for text in texts)
        yield [
            Piece(_padded(label, LABEL_WIDTH), name, fact.action),
            Piece(
                shown if fact.is_selected else shown.rstrip(),
                ink(fact.colour, surface),
                fact.action,
            ),
        ]


def _padded(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))


def _flow(pieces: Sequence[Piece], width: int) -> Iterator[Pieces]:
    line: Pieces = []
    used = 0
    for piece in pieces:
        needed = width_of(piece.text) + 2
        if line and used + needed - 2 > width:
            yield line
            line, used = [], 0
        line += [piece, Piece("  ", piece.style)]
        used += needed
    yield line


def _link(text: str, action: str) -> Iterator[Piece]:
    yield Piece(text, ink(ACCENT, PANEL), action)
    yield Piece("  ", ink(TEXT, PANEL))


class Prose(Scrolling):
    """Shows blocks of text; scrolls by wheel and by its bar."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.blocks: Sequence[Block] = ()
        self._lines: list[Pieces] = []

    def show(self, blocks: Sequence[Block], *, keep_place: bool = False) -> None:
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
        line = Line(self.room, ink(TEXT, PANEL))
        x = 0
        for piece in self._line_at(y):
            x = line.put(x, piece.text, piece.style)
        return line.strip()

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
        self._lines = lay_out(self.blocks, self.room)
        self.virtual_size = Size(self.room, len(self._lines))
        self.refresh()
