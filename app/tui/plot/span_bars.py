"""How spans look in a row of cells: bars with a label where they fit, density where they don't."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from rich.style import Style

from stepscope.app.palette import (
    CACHED,
    COUNTER,
    DECODE,
    FRONT_END,
    HELD,
    IDLE,
    MARKS,
    PARTS,
    PREEMPTED,
    PREFILL,
    STATES,
    WAITS,
    State,
)
from stepscope.app.timeline import SpanView, Viewport
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import MUTED, TEXT, blend, edge, ink, readable_on
from stepscope.app.widths import fit, width_of

Bytes = npt.NDArray[np.uint8]
Looks = npt.NDArray[np.uint16]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
RISING = " ▁▂▃▄▅▆▇█"
GROWING = " ▏▎▍▌▋▊▉"
LOOKS = 16
"""More than there are heights."""
MOMENT = "◆"
# How a bar is filled, by the palette's second cue; other bars are filled with the state's glyph.
FILLS = {"solid": "█", "ticks": "▌", "hatch": "▒", "split": "▀"}
# States that are drawn as a line of glyphs on the surface, not as a filled bar.
LINES = frozenset({*WAITS, PREEMPTED, IDLE, HELD, FRONT_END, CACHED})
MARKED = frozenset(kind for kind, state in enumerate(STATES) if state.cue == "mark")
"""States that are shown by a sign where they begin, and go on as a thin line."""
GOES_ON = "┄"
# Share of a cell that a fill glyph covers with the state's colour, and the tint under the rest.
COVERS = {"█": 1.0, "▓": 0.75, "▒": 0.5, "░": 0.25, "▌": 1.0}
TINT = 0.5
TICK_TINT = 0.3


@dataclass(frozen=True, slots=True)
class Plot:
    """Where on a line a range of time is drawn: `width` cells from cell `left` on."""

    left: int
    width: int
    viewport: Viewport

    @property
    def right(self) -> int:
        """The cell after the last one."""
        return self.left + self.width

    def cell(self, ts_ns: int) -> int:
        """The cell that a time falls in; it may lie outside the plot."""
        return self.left + (ts_ns - self.viewport.t0) * self.width // self.viewport.span_ns

    def eighth(self, ts_ns: int) -> int:
        """The eighth of a cell that a time falls in, counted from cell 0, kept in the plot."""
        at = (ts_ns - self.viewport.t0) * self.width * 8 // self.viewport.span_ns
        return self.left * 8 + min(max(at, 0), self.width * 8)

    def time(self, x: int) -> int:
        """The time in the middle of a cell."""
        middle = (2 * (x - self.left) + 1) * self.viewport.span_ns // (2 * self.width)
        return self.viewport.t0 + middle

    def clip(self, x: int) -> int:
        """The cell, moved into the plot or just after it."""
        return min(max(x, self.left), self.right)


@cache
def fill_of(state: State) -> str:
    """The glyph that fills a bar of a state."""
    is_line = any(state == STATES[kind] for kind in LINES)
    return state.glyph if is_line else FILLS.get(state.cue, state.glyph)


@cache
def body_of(state: State, surface: str) -> str:
    """The colour of a bar as a whole: its edges and the ground of its label."""
    share = COVERS.get(fill_of(state), 1.0)
    return blend(state.colour, surface, share + (1 - share) * TINT)


@cache
def fill_style(state: State, surface: str) -> Style:
    """The style of that glyph; what is split has what it is made of above and below."""
    if state.cue == "split":
        return ink(STATES[PREFILL].colour, STATES[DECODE].colour)
    return ink(state.colour, surface)


def signs_of(states: Bytes, marks: Bytes) -> Bytes:
    """Which state has its sign in each cell [lanes, width], 0 for none: one of those that `marks`
    has there, where another fills the cell, and where a run of its cells begins.
    """
    begins = np.diff(marks, prepend=0, axis=-1) != 0
    signs: Bytes = np.where((marks > 0) & (begins | (states != marks)), marks, 0).astype(np.uint8)
    return signs


def paint_signs(line: Line, plot: Plot, signs: Bytes, surface: str) -> None:
    """Draw signs over what fills the cells."""
    for x in np.flatnonzero(signs).tolist():
        _paint_sign(line, plot.left + x, STATES[signs[x]], surface)


def _paint_sign(line: Line, x: int, state: State, surface: str) -> None:
    line.put(x, state.glyph, ink(state.colour, surface, bold=state.cue == "split"))


def looks_of(states: Bytes, density: Bytes) -> Looks:
    """How cells look, each as one number of what fills it most and how high: `LOOKS` a state."""
    heights = np.maximum((density.astype(np.uint16) * 8 + 254) // 255, 1)
    return np.where(states > 0, states * np.uint16(LOOKS) + heights, np.uint16(0))


def paint_density(line: Line, plot: Plot, looks: Looks, surface: str) -> None:
    """Draw what fills each cell most: filled like a bar, or as high as the cell is busy."""
    glyphs, styles = _density_cells(surface)
    shown = looks.tolist()
    line.lay(plot.left, [glyphs[look] for look in shown], [styles[look] for look in shown])


def paint_counter(line: Line, plot: Plot, heights: Bytes, known: Bools, surface: str) -> None:
    """Draw a counter's values as a row of low and high blocks, and nothing where it has none."""
    style = ink(STATES[COUNTER].colour, surface)
    looks = np.where(known, (heights.astype(np.int64) * 7 + 127) // 255 + 1, 0)
    for start, end in _runs(looks):
        line.fill(plot.left + start, plot.left + end, RISING[looks[start]], style)


def _runs(values: Ints) -> Iterator[tuple[int, int]]:
    """Where runs of equal values begin and end."""
    edges = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return pairwise(edges)


@lru_cache(maxsize=16)
def _density_cells(surface: str) -> tuple[list[str], list[Style]]:
    """The glyph and the style of every look; of nothing, the surface."""
    nothing = " ", ink(TEXT, surface)
    looks = (divmod(look, LOOKS) for look in range(LOOKS * len(STATES)))
    cells = [
        _density_cell(kind, height, surface) if kind and 0 < height < len(RISING) else nothing
        for kind, height in looks
    ]
    return [glyph for glyph, _ in cells], [style for _, style in cells]


def _density_cell(kind: int, height: int, surface: str) -> tuple[str, Style]:
    state = STATES[kind]
    if kind in LINES or kind in MARKED:
        return GOES_ON if kind in MARKED else state.glyph, ink(state.colour, surface)
    if height == len(RISING) - 1:
        return fill_of(state), fill_style(state, _ground(state, surface))
    return RISING[height], ink(body_of(state, surface), surface)


def paint_spans(
    line: Line, plot: Plot, spans: Sequence[SpanView], hidden: Collection[int], surface: str
) -> None:
    """Draw a bar for every span that is at least a cell wide, and a sign for each moment."""
    last_end, last_label = -1, ""
    narrow: list[SpanView] = []
    for place, span in enumerate(spans):
        start, end = plot.eighth(span.start_ns), plot.eighth(span.end_ns)
        if span.state in hidden:
            continue
        if end - start < 8:
            if _is_moment(span, spans[max(0, place - 1) : place + 2]):
                _paint_moment(line, plot, span, surface)
            elif span.state in MARKS:
                narrow.append(span)
            continue
        if span.state in LINES:
            _paint_line(line, start // 8, end // 8, STATES[span.state], surface)
        else:
            if STATES[span.state].cue == "ticks":
                start, end = start // 8 * 8, end // 8 * 8
            # A run of equal spans close together is labelled once.
            label = "" if start - last_end <= 8 and span.label == last_label else span.label
            bar = Bar(start, end, STATES[span.state], label, start == last_end, span.parts)
            _paint_bar(line, bar, surface)
            last_end, last_label = end, span.label
    for span in narrow:
        x = plot.cell(span.start_ns)
        if plot.left <= x < plot.right:
            _paint_sign(line, x, STATES[span.state], surface)


def _is_moment(span: SpanView, around: Sequence[SpanView]) -> bool:
    """Tell whether a span takes no time, and stands apart from those beside it that do."""
    start, end = span.start_ns, span.end_ns
    return start == end and not any(
        each.start_ns < each.end_ns and each.start_ns <= end and each.end_ns >= start
        for each in around
    )


def _paint_moment(line: Line, plot: Plot, span: SpanView, surface: str) -> None:
    """Put a sign where something took no time; what marks a state by its sign has that one."""
    state, x = STATES[span.state], plot.cell(span.start_ns)
    if not plot.left <= x < plot.right:
        return
    if state.cue == "mark":
        line.put(x, state.glyph, ink(state.colour, surface))
    else:
        line.put(x, MOMENT, ink(MUTED if span.state in LINES else state.colour, surface))


def outline(line: Line, plot: Plot, start_ns: int, end_ns: int, style: Style) -> None:
    """Bracket what is selected; what is less than three cells wide is inverted."""
    start = plot.clip(plot.cell(start_ns))
    end = min(max(plot.clip(plot.cell(end_ns)), start + 1), plot.right)
    if end - start < 3:
        line.restyle(start, end, Style(color=style.bgcolor, bgcolor=style.color, bold=True))
        return
    line.put(start, "▐", style)
    line.put(end - 1, "▌", style)


def _paint_line(line: Line, start: int, end: int, state: State, surface: str) -> None:
    style = ink(state.colour, surface)
    line.fill(start, end, GOES_ON if state.cue == "mark" else state.glyph, style)
    if state.cue == "mark":
        line.put(start, state.glyph, style)


@dataclass(frozen=True, slots=True)
class Bar:
    """A span on a line, in eighths of cells; `touches` the bar before it, `parts` as a span's."""

    start: int
    end: int
    state: State
    label: str
    touches: bool
    parts: tuple[float, ...] = ()


def _paint_bar(line: Line, bar: Bar, surface: str) -> None:
    """Draw a bar with edges in eighths of a cell; one that touches another shows where."""
    body = body_of(bar.state, surface)
    first, rest = divmod(bar.start, 8)
    if rest:
        before = line.style(first).color if bar.touches else None
        line.put(first, GROWING[rest], edge(before.name if before else surface, body))
    full, last = first + bool(rest), bar.end // 8
    line.fill(full, last, *_fill(bar, surface))
    if bar.end % 8:
        line.put(last, GROWING[bar.end % 8], ink(body, surface))
    has_edge = bar.touches and not rest and full < last and bar.state.cue != "ticks"
    if has_edge:
        line.put(full, "▏", edge(surface, body))
    _paint_label(line, full + has_edge, last, bar, body)


def _fill(bar: Bar, surface: str) -> tuple[str, Style]:
    """What fills a bar; a split one has its decodes below, an eighth of a cell at least."""
    state = bar.state
    if state.cue != "split" or not bar.parts:
        return fill_of(state), fill_style(state, _ground(state, surface))
    *above, below = zip(bar.parts, PARTS, strict=True)
    height = min(max(round(below[0] * 8), 1), 7)
    return RISING[height], ink(STATES[below[1]].colour, STATES[max(above)[1]].colour)


def _ground(state: State, surface: str) -> str:
    """What shows between the dots of a fill; a solid one has none, so that no seams show."""
    if state.cue == "solid" or state.glyph == "█":
        return state.colour
    return blend(state.colour, surface, TICK_TINT if state.cue == "ticks" else TINT)


def _paint_label(line: Line, start: int, end: int, bar: Bar, body: str) -> None:
    """Write the label, its beginning, or the letter of the state, whichever fits."""
    room = end - start
    shown = bar.label
    if width_of(shown) > room:
        letter = bar.state.glyph if bar.state.glyph.isalpha() else ""
        shown = letter[:room] or fit(shown, room)
    margin = 1 if room > width_of(shown) and room > 3 else 0
    # Two letters and an ellipsis say less than the fill that they would hide.
    if not shown.endswith("…") or width_of(shown) > 3:
        line.put(start + margin, shown, ink(readable_on(body), body, bold=True), end)
