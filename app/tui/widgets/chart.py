"""Stacked bars over the steps of a trace, drawn in eighths of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import ACCENT, BACKGROUND, BORDER, MUTED, TEXT, blend, ink
from stepscope.app.units import count

EIGHTHS = " ▁▂▃▄▅▆▇█"
AXIS_WIDTH = 8
WIDEST_BAR = 12
# A ceiling this many times above the highest bar is told, not drawn.
FAR = 2.5
TOP = "▔"
"""The ceiling, at the upper edge of its cell."""
INKED = {"░": 0.25, "▒": 0.5, "▌": 0.5, "▓": 0.75}
"""How much of a cell a glyph covers; what is between has so much of its colour:"""
BETWEEN = 0.35
Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Layer:
    """A number per step, NaN where unknown; `glyph` fills its bars so that colour is not alone."""

    name: str
    values: Numbers
    colour: str
    glyph: str = "█"


def per_column(layers: Numbers, width: int) -> Numbers:
    """Layers of steps on `width` columns: of each column's steps the highest, all its layers.

    Steps that are too many for a mean to tell that one of them was full are shown by that one. A
    step may span columns; what is not known has no height.
    """
    num_steps = layers.shape[1]
    num_columns = min(width, num_steps)
    if not num_columns:
        return np.empty((len(layers), 0))
    known = np.nan_to_num(layers)
    edges = np.linspace(0, num_steps, num_columns + 1).astype(int)
    column = np.repeat(np.arange(num_columns), np.diff(edges))
    highest = np.lexsort((-known.sum(axis=0), column))[edges[:-1]]
    places = np.linspace(0, width, num_columns + 1).astype(int)
    return np.repeat(known[:, highest], np.diff(places), axis=1)


class Chart(Widget):
    """Layers stacked from the bottom up, against a ceiling; a click chooses a step."""

    ALLOW_SELECT = False

    @dataclass
    class Chosen(Message):
        """A step was clicked; `index` counts the trace's steps."""

        index: int

    def __init__(self, title: str, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.heading = title
        self.stack: tuple[Layer, ...] = ()
        self.ceiling: float | None = None
        self.cursor: int | None = None
        self._drawn: tuple[tuple[int, int], float, list[list[float]]] | None = None

    def show(self, layers: tuple[Layer, ...], ceiling: float | None = None) -> None:
        """Show other numbers; `ceiling` is the most that they can reach together."""
        self.stack = layers
        self.ceiling = ceiling
        self._drawn = None
        self.refresh()

    def point_at(self, index: int | None) -> None:
        """Put the cursor on a step."""
        self.cursor = index
        self.refresh()

    @property
    def num_steps(self) -> int:
        """How many steps the layers have."""
        return len(self.stack[0].values) if self.stack else 0

    @property
    def _tells_any(self) -> bool:
        """Whether any number is known; bars of what is not would look as if it were 0."""
        return any(np.isfinite(each.values).any() for each in self.stack)

    def render_line(self, y: int) -> Strip:
        """Paint the heading with the names of the layers, or a line of the bars."""
        line = Line(self.size.width, ink(TEXT, BACKGROUND))
        if y == 0:
            self._paint_heading(line)
        elif self._tells_any:
            self._paint_bars(line, self.size.height - 1 - y)
        elif y == 1:
            untold = f"This trace does not tell the {self.heading} of its steps."
            said = untold if self.num_steps else "This trace has no steps."
            line.put(1, said, ink(MUTED, BACKGROUND))
        return line.strip()

    def on_click(self, event: events.Click) -> None:
        """Choose the step that was clicked."""
        room = self._room
        if self.num_steps and event.y > 0 and 0 <= event.x - AXIS_WIDTH < room:
            event.stop()
            self.post_message(self.Chosen((event.x - AXIS_WIDTH) * self.num_steps // room))

    def _paint_heading(self, line: Line) -> None:
        x = line.put(1, self.heading, ink(TEXT, BACKGROUND, bold=True)) + 2
        for layer in self.stack:
            name = f" {layer.name}{self._now(layer)}"
            if x + 2 + len(name) <= line.width:
                x = line.put(x, layer.glyph * 2, ink(layer.colour, BACKGROUND))
                x = line.put(x, name, ink(MUTED, BACKGROUND)) + 2
        if self.ceiling is not None and x + 12 <= line.width:
            above = ", above" if self._shown_ceiling is None else ""
            x = line.put(x, f"─ of {count(self.ceiling)}{above}", ink(MUTED, BACKGROUND))
        each = ", of each cell the fullest" if self.num_steps > self._room else ""
        along = f"{count(self.num_steps)} steps{each} →"
        if self._tells_any and x + len(along) + 3 <= line.width:
            line.put_right(along, ink(MUTED, BACKGROUND), line.width - 1)

    def _now(self, layer: Layer) -> str:
        if self.cursor is None or not np.isfinite(layer.values[self.cursor]):
            return ""
        return f" {count(float(layer.values[self.cursor]))}"

    def _paint_bars(self, line: Line, level: int) -> None:
        room, height = self._room, self.size.height - 1
        if room <= 0:
            return
        top, tops = self._heights(room, height)
        self._paint_axis(line, level, height, top)
        for x in range(room):
            self._paint_cell(line, x + AXIS_WIDTH, level, tops[x])
        if self.cursor is not None:
            at = AXIS_WIDTH + (2 * self.cursor + 1) * room // (2 * self.num_steps)
            if line.glyph(at) in (" ", TOP):
                line.put(at, "┊", ink(ACCENT, BACKGROUND))

    @property
    def _room(self) -> int:
        """Cells for the bars: all there are, unless the steps are so few that bars grow fat."""
        return min(self.size.width - AXIS_WIDTH, self.num_steps * WIDEST_BAR)

    def _heights(self, room: int, height: int) -> tuple[float, list[list[float]]]:
        """The value at the top, and per cell how high each layer reaches, in eighths of a line."""
        if self._drawn is None or self._drawn[0] != (room, height):
            columns = per_column(np.array([each.values for each in self.stack]), room)
            highest = float(columns.sum(axis=0).max(initial=0.0))
            top = max(highest, self._shown_ceiling or 0.0) or 1.0
            tops = np.cumsum(columns, axis=0) / top * height * 8
            self._drawn = ((room, height), top, tops.T.tolist())
        return self._drawn[1], self._drawn[2]

    @property
    def _shown_ceiling(self) -> float | None:
        """The ceiling, unless it is so high that the bars below it would tell nothing."""
        total = sum((np.nan_to_num(each.values) for each in self.stack), np.zeros(self.num_steps))
        is_near = self.ceiling is not None and total.max(initial=0.0) * FAR >= self.ceiling
        return self.ceiling if is_near else None

    def _paint_axis(self, line: Line, level: int, height: int, top: float) -> None:
        if level == height - 1 and self._shown_ceiling is not None:
            line.fill(AXIS_WIDTH, line.width, TOP, ink(BORDER, BACKGROUND))
        if level in (0, height - 1):
            value = top if level else 0.0
            line.put_right(count(round(value)), ink(MUTED, BACKGROUND), AXIS_WIDTH - 1)

    def _paint_cell(self, line: Line, x: int, level: int, tops: list[float]) -> None:
        """Fill the cell with the layer at its bottom, up to where the next layer begins."""
        floor = level * 8
        bottom = next((n for n, top in enumerate(tops) if top > floor), None)
        if bottom is None:
            return
        layer, filled = self.stack[bottom], min(ceil(tops[bottom] - floor), 8)
        if filled == 8:
            line.put(x, layer.glyph, ink(layer.colour, blend(layer.colour, BACKGROUND, BETWEEN)))
            return
        above = _all_over(self.stack[bottom + 1]) if tops[-1] >= floor + 8 else BACKGROUND
        line.put(x, EIGHTHS[filled], ink(_all_over(layer), above))


def _all_over(layer: Layer) -> str:
    """The colour that a cell of the layer has on the whole, for a part of one, without a glyph."""
    inked = INKED.get(layer.glyph, 1.0)
    return blend(layer.colour, BACKGROUND, inked + (1 - inked) * BETWEEN)
