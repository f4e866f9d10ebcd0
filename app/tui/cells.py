"""A line of terminal cells to paint on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from stepscope.app.tui.cell_strip import CellStrip, runs_of
from stepscope.app.widths import graphemes, width_of


class Line:
    """A line of `width` cells; what is put later covers what was there, what is outside is cut."""

    __slots__ = ("_glyphs", "_styles", "width")

    def __init__(self, width: int, style: Style) -> None:
        self.width = width
        self._glyphs = [" "] * width
        self._styles = [style] * width

    def put(self, x: int, text: str, style: Style, end: int | None = None) -> int:
        """Write `text` from cell `x` on, up to cell `end`; returns the cell after it."""
        limit = self.width if end is None else min(end, self.width)
        if x >= 0 and text.isascii() and text.isprintable():
            return self._put_plain(x, text[: max(limit - x, 0)], style)
        for glyph, cells in graphemes(text):
            if x + cells > limit:
                break
            if x >= 0:
                self._set(x, glyph, cells, style)
            x += cells
        return x

    def put_right(self, text: str, style: Style, end: int | None = None) -> int:
        """Write `text` so that it ends before cell `end`; returns the cell where it begins."""
        start = (self.width if end is None else end) - width_of(text)
        self.put(start, text, style, end)
        return start

    def fill(self, start: int, end: int, glyph: str, style: Style) -> None:
        """Repeat a one-cell glyph over the cells from `start` to before `end`."""
        first, last = max(start, 0), min(end, self.width)
        if last > first:
            self._mend(first)
            self._mend(last)
            self._glyphs[first:last] = [glyph] * (last - first)
            self._styles[first:last] = [style] * (last - first)

    def lay(self, x: int, glyphs: Sequence[str], styles: Sequence[Style]) -> None:
        """Put one-cell glyphs, each in its style, into the cells from `x` on; all are inside."""
        end = x + len(glyphs)
        self._mend(x)
        self._mend(end)
        self._glyphs[x:end] = glyphs
        self._styles[x:end] = styles

    def restyle(self, start: int, end: int, style: Style) -> None:
        """Lay `style` over what is there; attributes that it leaves open stay as they are."""
        for x in range(max(start, 0), min(end, self.width)):
            self._styles[x] = over(self._styles[x], style)

    def glyph(self, x: int) -> str:
        """What stands in cell `x`; empty for the right half of a wide glyph, and outside."""
        return self._glyphs[x] if 0 <= x < self.width else ""

    def style(self, x: int) -> Style:
        """The style of cell `x`."""
        return self._styles[x]

    def strip(self) -> Strip:
        """The line as Textual wants it."""
        styles, text = self._styles, "".join(self._glyphs)
        if len(text) == self.width and (text.isascii() or cell_len(text) == self.width):
            return CellStrip(text, styles)
        return Strip([Segment(self._text(a, b), styles[a]) for a, b in runs_of(styles)], self.width)

    def _text(self, start: int, end: int) -> str:
        text = "".join(self._glyphs[start:end])
        if text.isascii() or cell_len(text) == end - start:
            return text
        # A terminal would measure these glyphs otherwise once they stand side by side.
        return "".join(glyph if cell_len(glyph) == 1 else "?" for glyph in self._glyphs[start:end])

    def _put_plain(self, x: int, text: str, style: Style) -> int:
        """Write text of one cell a character, all of which is inside, at once."""
        end = x + len(text)
        if text:
            self._mend(x)
            self._mend(end)
            self._glyphs[x:end] = text
            self._styles[x:end] = [style] * len(text)
        return end

    def _set(self, x: int, glyph: str, cells: int, style: Style) -> None:
        self._mend(x)
        self._mend(x + cells)
        self._glyphs[x], self._styles[x] = glyph, style
        if cells == 2:
            self._glyphs[x + 1], self._styles[x + 1] = "", style

    def _mend(self, x: int) -> None:
        """Give up the wide glyph, if any, whose right half is in cell `x`."""
        if 0 < x < self.width and not self._glyphs[x]:
            self._glyphs[x - 1] = self._glyphs[x] = " "


def strip_of(runs: Iterable[tuple[str, Style]], width: int, style: Style) -> Strip:
    """A line of runs of text, one after another; `style` is that of the cells behind the last."""
    runs = [*runs]
    left = width - sum(len(text) for text, _ in runs)
    if left < 0 or not all(text.isascii() and text.isprintable() for text, _ in runs):
        line, x = Line(width, style), 0
        for text, own in runs:
            x = line.put(x, text, own)
        return line.strip()
    segments: list[Segment] = []  # what is one cell a character needs no cells to paint on
    for text, own in (*runs, (" " * left, style)):
        if segments and segments[-1].style is own:
            segments[-1] = Segment(segments[-1].text + text, own)
        elif text:
            segments.append(Segment(text, own))
    return Strip(segments, width)


@lru_cache(maxsize=4096)
def over(below: Style, above: Style) -> Style:
    """`above` laid over `below`; the same pair gives the same object, so that runs merge."""
    return below + above
