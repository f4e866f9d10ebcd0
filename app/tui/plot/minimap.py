"""The whole trace at a glance: load, findings, and which part of it the timeline shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from stepscope.analyzers.findings.finding import SEVERITIES
from stepscope.app.palette import FLAG, FLAG_GLYPH, HIT, HIT_GLYPH, MIXED, SEVERITY_MARKS, STATES
from stepscope.app.timeline import LoadOverTime
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import (
    ACCENT,
    BACKGROUND,
    MUTED,
    RAISED,
    TEXT,
    ink,
    on,
)
from stepscope.app.widths import fit_middle

LEFT = np.cumsum((0, 0x40, 0x04, 0x02, 0x01))
RIGHT = np.cumsum((0, 0x80, 0x20, 0x10, 0x08))
"""What so many dots of a Braille sign are, from the bottom up, in its left and its right column."""
MOST_DOTS = 16
"""Lines of dots that are kept, until there are so many."""
MARKS = {
    FLAG_GLYPH,
    HIT_GLYPH,
    STATES[MIXED].glyph,
    *(mark.glyph for mark in SEVERITY_MARKS.values()),
}


class Minimap(Widget):
    """Load in braille on all lines but the last, which has the marks of the findings."""

    ALLOW_SELECT = False

    @dataclass
    class Chosen(Message):
        """A time was clicked or dragged to."""

        ts_ns: int

    @dataclass
    class FindingChosen(Message):
        """The mark of a finding was clicked."""

        index: int

    @dataclass
    class HitChosen(Message):
        """The mark of hits was clicked: when the first of them is."""

        ts_ns: int

    @dataclass
    class FlagChosen(Message):
        """A flag was clicked."""

        flag: FlagAt

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state: Navigator | None = None
        self.gutter_width = 0
        self._load: LoadOverTime | None = None
        self._dots: dict[tuple[int, int, int], tuple[LoadOverTime, list[str], list[Style]]] = {}

    def show(self, state: Navigator, gutter_width: int) -> None:
        """Draw a state; `gutter_width` cells on the left are for the names of the lines."""
        if state is not self.state:
            self._load = None
        self.state, self.gutter_width = state, gutter_width
        self.refresh()

    @property
    def plot_width(self) -> int:
        """Cells that stand for the trace."""
        return max(self.size.width - self.gutter_width, 1)

    def render_line(self, y: int) -> Strip:
        """Paint a line of the load, or the findings."""
        line = Line(self.size.width, ink(TEXT, BACKGROUND))
        if self.state is None:
            return line.strip()
        is_last = y == self.size.height - 1
        if is_last:
            line.put(1, "findings", ink(MUTED, BACKGROUND), self.gutter_width)
            self._paint_marks(line, self.state)
        else:
            if y == 0:
                what = fit_middle(self._look_up(self.state).what, self.gutter_width - 2)
                line.put(1, what, ink(MUTED, BACKGROUND), self.gutter_width)
            self._paint_load(line, self.size.height - 2 - y, self.state)
            if y == 0:
                self._paint_mixed(line, self.state)
                self._paint_hits(line, self.state)
            self._paint_flags(line, self.state, y)
        self._paint_viewport(line, self.state)
        if is_last:
            self._paint_current(line, self.state)
        return line.strip()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Jump to the finding or the hit under the mouse, else look there and follow the mouse."""
        event.stop()
        found = self._finding_at(event.x) if event.y == self.size.height - 1 else None
        hit_ns = self._hit_at(event.x) if event.y == 0 else None
        flag = self._flag_at(event.x, event.y)
        if flag is not None:
            self.post_message(self.FlagChosen(flag))
        elif found is not None:
            self.post_message(self.FindingChosen(found))
        elif hit_ns is not None:
            self.post_message(self.HitChosen(hit_ns))
        elif event.x >= self.gutter_width:
            self.capture_mouse()
            self.post_message(self.Chosen(self._time_at(event.x)))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Follow the mouse while its button is down."""
        if self.app.mouse_captured is self:
            self.post_message(self.Chosen(self._time_at(event.x)))

    def on_mouse_up(self) -> None:
        """Let go of the mouse."""
        self.release_mouse()

    def _time_at(self, x: int) -> int:
        assert self.state is not None
        first, last = self.state.timeline.bounds
        share = (x - self.gutter_width + 0.5) / self.plot_width
        return first + round(min(max(share, 0.0), 1.0) * (last - first))

    def _cell_of(self, ts_ns: int, state: Navigator) -> int:
        first, last = state.timeline.bounds
        share, width = (ts_ns - first) / max(last - first, 1), self.plot_width
        return self.gutter_width + min(int(min(max(share, 0.0), 1.0) * width), width - 1)

    def _finding_at(self, x: int) -> int | None:
        state = self.state
        assert state is not None
        near = (
            (abs(self._cell_of(each.ts_ns, state) - x), index)
            for index, each in enumerate(state.findings or ())
            if each.ts_ns is not None
        )
        distance, index = min(near, default=(2, 0))
        return index if distance <= 1 else None

    def flags_of(self, state: Navigator, y: int) -> Sequence[FlagAt]:
        """The flags that stand on a line."""
        return state.flags if y == 0 else ()

    def _flag_at(self, x: int, y: int) -> FlagAt | None:
        """The flag in a cell, the first of several; None where there is none."""
        state = self.state
        assert state is not None
        flags = self.flags_of(state, y)
        return next((each for each in flags if self._cell_of(each.ts_ns, state) == x), None)

    def _hit_at(self, x: int) -> int | None:
        """When the first hit is whose mark stands in a cell or next to it, the nearest first."""
        state = self.state
        assert state is not None
        distance = np.abs(self._hit_cells(state) + self.gutter_width - x)
        if not len(distance) or distance.min() > 1:
            return None
        return int(state.hits_ns[distance.argmin()])

    def _hit_cells(self, state: Navigator) -> npt.NDArray[np.int64]:
        """The cell of the plot that each hit is marked in."""
        first, last = state.timeline.bounds
        share = np.clip((state.hits_ns - first) / max(last - first, 1), 0, 1)
        return np.minimum(share * self.plot_width, self.plot_width - 1).astype(np.int64)

    @property
    def load_height(self) -> int:
        """Lines that a load is drawn on."""
        return self.size.height - 1

    def _look_up(self, state: Navigator) -> LoadOverTime:
        width = self.plot_width * 2
        if self._load is None or self._load.shares.shape[1] != width:
            self._load = state.timeline.load(width)
        return self._load

    def _paint_load(self, line: Line, level: int, state: Navigator) -> None:
        """Two dots wide and four high a cell, in the colour of what there is most of."""
        load = self._look_up(state)
        if not load.states:
            return
        if len(self._dots) > MOST_DOTS:
            self._dots.clear()
        key = level, self.load_height, id(load)
        if key not in self._dots:
            self._dots[key] = load, *self._dots_of(load, level)
        line.lay(self.gutter_width, *self._dots[key][1:])

    def _dots_of(self, load: LoadOverTime, level: int) -> tuple[list[str], list[Style]]:
        total = np.minimum(load.shares.sum(axis=0), 1.0)
        dots = np.clip(np.ceil(total * 4 * self.load_height) - 4 * level, 0, 4).astype(int)
        most = load.shares.reshape(len(load.states), -1, 2).sum(axis=2).argmax(axis=0)
        pattern = LEFT[dots[::2]] + RIGHT[dots[1::2]]
        inks = [ink(STATES[each].colour, BACKGROUND) for each in load.states]
        empty = " ", ink(TEXT, BACKGROUND)
        shown = [
            (chr(0x2800 + each), inks[kind]) if each else empty
            for each, kind in zip(pattern.tolist(), most.tolist(), strict=True)
        ]
        return [glyph for glyph, _ in shown], [style for _, style in shown]

    def _paint_mixed(self, line: Line, state: Navigator) -> None:
        """A sign where mixed steps begin to run, over the load."""
        mixed = STATES[MIXED]
        if MIXED in state.hidden:
            return
        for pixel in self._look_up(state).mixed_runs(apart=2):
            x = self.gutter_width + pixel // 2
            line.put(x, mixed.glyph, ink(mixed.colour, BACKGROUND, bold=True))

    def _paint_marks(self, line: Line, state: Navigator) -> None:
        for severity in reversed(SEVERITIES):
            style = ink(SEVERITY_MARKS[severity].colour, BACKGROUND)
            cells = {
                self._cell_of(each.ts_ns, state)
                for each in state.findings or ()
                if each.ts_ns is not None and each.severity == severity
            }
            for x in cells:
                line.put(x, SEVERITY_MARKS[severity].glyph, style)

    def _paint_hits(self, line: Line, state: Navigator) -> None:
        """Marks where the condition that is looked for is met, over the load."""
        for cell in np.unique(self._hit_cells(state)).tolist():
            line.put(self.gutter_width + cell, HIT_GLYPH, ink(HIT, BACKGROUND, bold=True))

    def _paint_flags(self, line: Line, state: Navigator, y: int) -> None:
        """What a user put somewhere, over the load as well."""
        for flag in self.flags_of(state, y):
            x = self._cell_of(flag.ts_ns, state)
            line.put(x, FLAG_GLYPH, ink(FLAG, BACKGROUND, bold=True))

    def _paint_viewport(self, line: Line, state: Navigator) -> None:
        start = self._cell_of(state.viewport.t0, state)
        end = self._cell_of(state.viewport.t1, state)
        line.restyle(start, end + 1, on(RAISED))
        style = ink(ACCENT, RAISED, bold=True)
        for x, glyph in ((start, "[" if end > start else "┃"), (end, "]" if end > start else "┃")):
            if line.glyph(x) not in MARKS:
                line.put(x, glyph, style)

    def _paint_current(self, line: Line, state: Navigator) -> None:
        found = state.selection.finding
        if found and found.ts_ns is not None:
            at = self._cell_of(found.ts_ns, state)
            line.put(at, SEVERITY_MARKS[found.severity].glyph, ink(BACKGROUND, ACCENT, bold=True))
