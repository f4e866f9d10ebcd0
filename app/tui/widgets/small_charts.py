"""The charts of a summary in a few lines of a terminal: histograms, and numbers over time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stepscope.app.debug.shown.sparkline import Timeline, sparkline
from stepscope.app.palette import COUNTER, PREEMPTED, STATES
from stepscope.app.present.summary.parts import Chart, Histogram, TimeLines
from stepscope.app.tui.ink import MUTED, PANEL, TEXT, ink
from stepscope.app.tui.widgets.prose import Painted
from stepscope.app.tui.widgets.text_bar import Piece
from stepscope.app.units import count, duration
from stepscope.app.widths import fit

HEIGHT = 3
EIGHTHS = " ▁▂▃▄▅▆▇█"
WITHIN, BEYOND = STATES[COUNTER].colour, STATES[PREEMPTED].colour
LIMIT = "┊"
MOST_RANKS = 4


def chart_lines(chart: Chart, width: int, start_ns: int) -> Iterator[Painted]:
    """A chart in lines of at most `width` cells; `start_ns` is when the trace began."""
    yield Painted(())
    match chart:
        case Histogram():
            yield from _histogram(chart, width)
        case TimeLines():
            yield from _lines(chart, width, start_ns)


def _histogram(chart: Histogram, width: int) -> Iterator[Painted]:
    """How many values lie where: bars, those beyond the limit behind a line and in its colour."""
    edges, counts = chart.of.edges, chart.of.counts
    if edges[-1] - 1 <= edges[0]:
        said = f"{chart.title} of {count(chart.of.num)}, each {duration(int(edges[0]))}"
        yield _line(said, TEXT, width)
        return
    most = int(counts.max())
    limit = "" if chart.limit_ns is None else f", {LIMIT} limit {duration(chart.limit_ns)}"
    head = f"{chart.title} of {count(chart.of.num)}, up to {count(most)} in a bar{limit}"
    yield _line(head, TEXT, width)
    places = _widened(len(counts), width)
    tops = np.ceil(counts / most * HEIGHT * 8).astype(int)
    is_beyond = (
        np.zeros(len(counts), bool) if chart.limit_ns is None else edges[:-1] > chart.limit_ns
    )
    first_beyond = int(np.argmax(is_beyond[places])) if is_beyond.any() else -1
    for level in reversed(range(HEIGHT)):
        filled = np.clip(tops - 8 * level, 0, 8)
        glyphs = [EIGHTHS[filled[place]] for place in places]
        if first_beyond >= 0 and glyphs[first_beyond] == " ":
            glyphs[first_beyond] = LIMIT
        cut = len(glyphs) if first_beyond < 0 else first_beyond
        yield Painted((
            Piece("".join(glyphs[:cut]), ink(WITHIN, PANEL)),
            Piece("".join(glyphs[cut:]), ink(BEYOND, PANEL)),
        ))  # fmt: skip
    ends = duration(int(edges[0])), duration(int(edges[-1]) - 1)
    room = max(len(places) - len(ends[0]), len(ends[1]) + 1)
    yield _line(f"{ends[0]}{ends[1]:>{room}}", MUTED, width)


def _widened(num_parts: int, width: int) -> list[int]:
    """Which part each cell shows: each part is as many whole cells wide, one at least."""
    cells = max(min(width, 80) // num_parts, 1)
    return [place for place in range(num_parts) for _ in range(cells)][:width]


def _lines(chart: TimeLines, width: int, start_ns: int) -> Iterator[Painted]:
    for line in chart.lines[:MOST_RANKS]:
        rank = f" of rank {line.rank}" if len(chart.lines) > 1 else ""
        low, high = float(line.values.min()), line.most
        between = (
            f"{low:.0%} to {high:.0%}" if chart.are_shares else f"{count(low)} to {count(high)}"
        )
        yield _line(f"{chart.title}{rank}, {between}, the most of each time", TEXT, width)
        bounds = int(line.ts_ns[0]), int(line.ts_ns[-1])
        room = min(width, 80)
        drawn = sparkline(Timeline(line.ts_ns, line.values, bounds), room)
        yield Painted((Piece(drawn, ink(WITHIN, PANEL)),))
        ends = tuple(duration(end - start_ns) for end in bounds)
        gap = max(room - len(ends[0]), len(ends[1]) + 1)
        yield _line(f"{ends[0]}{ends[1]:>{gap}}", MUTED, width)
    if len(chart.lines) > MOST_RANKS:
        yield _line(f"and {len(chart.lines) - MOST_RANKS:,} more ranks", MUTED, width)


def _line(text: str, colour: str, width: int) -> Painted:
    return Painted((Piece(fit(text, max(width, 1)), ink(colour, PANEL)),))
