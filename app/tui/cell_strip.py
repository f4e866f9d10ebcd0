"""A strip of terminal cells that goes to the terminal as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import compress, islice, pairwise
from operator import is_not

from rich.color import ColorSystem
from rich.console import COLOR_SYSTEMS, Console
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.strip import Strip

RESET = "\x1b[0m"
NO_STYLE = Style()
MOST_PAIRS = 1 << 16


class StyleFilter(LineFilter):
    """A filter that looks at styles alone."""

    def style(self, style: Style) -> Style:
        """What stands in place of a style."""
        raise NotImplementedError

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """Give the same text in other styles."""
        del background
        return [
            Segment(text, self.style(style) if style is not None else None, control)
            for text, style, control in segments
        ]


class CellStrip(Strip):
    """A strip whose segments are made only where somebody asks for them.

    `text` is of one cell a character, and each has its style, none of which is a link. A frame of
    a full screen is thousands of runs of equal style. A terminal needs their text, and what changes
    from one to the next; both, and the parts of a divided strip, are there without segments.
    """

    __slots__ = ("_each", "_whole")

    def __init__(self, text: str, styles: Sequence[Style]) -> None:
        # All else that a strip keeps is made by `__getattr__`.
        self._whole, self._each = text, styles
        self._cell_length = len(text)
        self._render_cache = None

    def __getattr__(self, name: str) -> object:
        """Become a strip of segments, when something wants what only such a strip has."""
        text, styles = self._whole, self._each
        segments = [Segment(text[a:b], styles[a]) for a, b in runs_of(styles)]
        super().__init__(segments, len(text))
        return object.__getattribute__(self, name)

    def extend_cell_length(self, cell_length: int, style: Style | None = None) -> Strip:
        """The strip with spaces behind it, up to `cell_length` cells."""
        left = cell_length - len(self._whole)
        if left <= 0:
            return self
        return CellStrip(self._whole + " " * left, [*self._each, *[style or Style()] * left])

    def crop(self, start: int, end: int | None = None) -> Strip:
        """The cells from `start` to before `end`."""
        first, last = max(start, 0), len(self._whole) if end is None else max(end, 0)
        if first == 0 and last >= len(self._whole):
            return self
        return CellStrip(self._whole[first:last], self._each[first:last])

    def divide(self, cuts: Iterable[int]) -> Sequence[Strip]:
        """The parts that end at each of `cuts`."""
        ends = (cut for cut in cuts if cut <= len(self._whole))
        return [self.crop(start, end) for start, end in pairwise((0, *ends))]

    def apply_filter(self, filter: LineFilter, background: Color) -> Strip:
        """The strip as a filter makes it; one that looks at styles alone needs no segments."""
        if not isinstance(filter, StyleFilter):
            return super().apply_filter(filter, background)
        distinct = {id(style): style for style in self._each}
        others = {key: filter.style(style) for key, style in distinct.items()}
        return CellStrip(self._whole, [others[id(style)] for style in self._each])

    def render(self, console: Console) -> str:
        """What a terminal is told: from run to run what changes, and at the end that all is off."""
        if self._render_cache is None:
            changes = _changes_in(console.color_system or "truecolor")
            self._render_cache = changes.drawn(self._whole, self._each)
        return self._render_cache


def runs_of(styles: Sequence[Style]) -> Iterator[tuple[int, int]]:
    """Where runs of one and the same style begin and end."""
    changes = compress(range(1, len(styles)), map(is_not, styles, islice(styles, 1, None)))
    return pairwise((0, *changes, len(styles))) if styles else iter(())


class Changes:
    """What makes a terminal of some colours go from one style to another.

    What was told of a pair is known by which objects they are: to compare styles takes longer than
    all else. The pair is kept with it, so that no other style comes to be at its place.
    """

    def __init__(self, colours: ColorSystem) -> None:
        self._colours = colours
        self._known: dict[tuple[int, int], tuple[str, Style, Style]] = {}

    def drawn(self, text: str, styles: Sequence[Style]) -> str:
        """Text with what is told before each run of a style, and at the end that all is over."""
        if not text:
            return ""
        told: list[str] = []
        known, before = self._known, NO_STYLE
        for start, end in runs_of(styles):
            after = styles[start]
            pair = id(before), id(after)
            if pair not in known:
                self._learn(before, after)
            told += known[pair][0], text[start:end]
            before = after
        return "".join(told) + RESET

    def _learn(self, before: Style, after: Style) -> None:
        if len(self._known) >= MOST_PAIRS:
            self._known.clear()
        codes = self._codes(before, after)
        told = f"\x1b[{codes}m" if codes else ""
        self._known[id(before), id(after)] = told, before, after

    def _codes(self, before: Style, after: Style) -> str:
        whole = Strip.render_ansi(after, self._colours)
        if before is NO_STYLE:
            return whole
        is_alike = self._attributes(before) == self._attributes(after)
        if not is_alike or not after.color or not after.bgcolor:
            return f"0;{whole}" if whole else "0"
        changed = Style(
            color=after.color if after.color != before.color else None,
            bgcolor=after.bgcolor if after.bgcolor != before.bgcolor else None,
        )
        return Strip.render_ansi(changed, self._colours)

    def _attributes(self, style: Style) -> str:
        return Strip.render_ansi(style.without_color, self._colours)


@lru_cache(maxsize=len(COLOR_SYSTEMS))
def _changes_in(system: str) -> Changes:
    return Changes(COLOR_SYSTEMS[system])
