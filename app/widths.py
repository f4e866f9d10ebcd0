"""Text measured in cells of a terminal: a wide character takes two, a mark above a letter none."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from stepscope.app.printable import plain

JOINTS = frozenset("_-/.,:;|=&?)>]}")
"""Where names and addresses are broken: behind one of these, if half of the line is full."""
UNITS_OF_TIME, ENDS = frozenset(("s", "ms", "µs", "ns")), ",.;:)"
LEAST_IN_TWO = 9
"""In fewer cells the beginning of a name says more than its two ends."""


@lru_cache(maxsize=16384)
def graphemes(text: str) -> tuple[tuple[str, int], ...]:
    """What `text` shows cell by cell: pairs of a glyph and its width of 1 or 2 cells.

    Control characters are replaced; marks are composed with their letter where Unicode can, and
    stay with it where it cannot.
    """
    shown = plain(text)
    if shown.isascii():
        return tuple((char, 1) for char in shown)
    from rich.cells import split_graphemes  # noqa: PLC0415 - most texts of most traces are ASCII

    composed = unicodedata.normalize("NFC", shown)
    spans, _ = split_graphemes(composed)
    return tuple((composed[start:end], width) for start, end, width in spans if width)


def width_of(text: str) -> int:
    """How many cells `text` takes."""
    if text.isascii():  # what is no letter is shown as one glyph
        return len(text)
    return sum(width for _, width in graphemes(text))


def fit(text: str, width: int) -> str:
    """`text` in at most `width` cells, its end replaced by `…` when it does not fit."""
    if width <= 0:
        return ""
    if width_of(text) <= width:
        return "".join(glyph for glyph, _ in graphemes(text))
    return "".join(_first_of(graphemes(text), width - 1)) + "…"


def fit_middle(text: str, width: int) -> str:
    """`text` in at most `width` cells, cut before its end: there names often differ."""
    if width_of(text) <= width or width < LEAST_IN_TWO:
        return fit(text, width)
    glyphs = graphemes(text)
    tail = [*_first_of(reversed(glyphs), 3 * (width - 1) // 5)][::-1]
    head = _first_of(glyphs, width - 1 - sum(width_of(glyph) for glyph in tail))
    return f"{''.join(head)}…{''.join(tail)}"


def _first_of(glyphs: Iterable[tuple[str, int]], width: int) -> Iterator[str]:
    for glyph, cells in glyphs:
        width -= cells
        if width < 0:
            return
        yield glyph


def wrap(text: str, width: int) -> list[str]:
    """`text` broken at spaces into lines of at most `width` cells; long words are broken too.

    They are broken behind a joint where one is near: `paged_` and `attention`. A time stays beside
    its unit.
    """
    lines, line = [], ""
    words = _words(plain(text))
    for word in (piece for each in words for piece in _pieces(each, max(width, 1))):
        joined = f"{line} {word}" if line else word
        if width_of(joined) > width and line:
            lines.append(line)
            line = word
        else:
            line = joined
    return [*lines, line] if line else lines


def _words(text: str) -> Iterator[str]:
    before = ""
    for word in text.split():
        if before[-1:].isdigit() and word.rstrip(ENDS) in UNITS_OF_TIME:
            before = f"{before} {word}"
            continue
        if before:
            yield before
        before = word
    if before:
        yield before


def _pieces(word: str, width: int) -> Iterator[str]:
    """A word in pieces of at most `width` cells, which end behind a joint where one is near."""
    piece, used = list[tuple[str, int]](), 0
    for glyph, cells in graphemes(word):
        if used + cells > width and piece:
            end = _last_joint(piece)
            yield "".join(each for each, _ in piece[:end])
            piece = piece[end:]
            used = sum(cells for _, cells in piece)
        piece.append((glyph, cells))
        used += cells
    if piece:
        yield "".join(each for each, _ in piece)


def _last_joint(piece: Sequence[tuple[str, int]]) -> int:
    """Where a piece ends that may not be longer: behind its last joint, or where it is full."""
    for end in range(len(piece), len(piece) // 2, -1):
        if piece[end - 1][0] in JOINTS:
            return end
    return len(piece)


def aligned(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    to_right: Sequence[bool],
    *,
    ruled: bool = False,
) -> Iterator[str]:
    """Lines of a table whose columns stand below each other, without blanks at their ends.

    `to_right` says of each column whether it ends where the others do; `ruled` has a line below
    the header. The texts are plain.
    """
    widths = [max(map(width_of, column)) for column in zip(header, *rows, strict=True)]
    rule = [["─" * width for width in widths]] if ruled else []
    for row in (header, *rule, *rows):
        cells = map(padded, row, widths, to_right)
        yield "  ".join(cells).rstrip()


def padded(text: str, width: int, to_right: bool = False) -> str:
    """`text` with as many blanks as it lacks to `width` cells."""
    blanks = " " * (width - width_of(text))
    return blanks + text if to_right else text + blanks
