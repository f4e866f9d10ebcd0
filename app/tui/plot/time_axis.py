"""The time ruler over the lanes; dragging on it marks a range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from stepscope.app.palette import FLAG, FLAG_GLYPH
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import ACCENT, BORDER, MUTED, PANEL, ink, on
from stepscope.app.tui.plot.lane_list import Lanes
from stepscope.app.tui.plot.lane_painter import MARK
from stepscope.app.tui.plot.span_bars import Plot
from stepscope.app.units import duration, ticks
from stepscope.app.widths import fit, width_of

CELLS_PER_TICK = 14
LONGEST_NAME = 16
"""Cells of the name of a flag on the ruler."""


class TimeAxis(Widget):
    """Round times, the cursor and the marked range, over the plot of the lanes."""

    ALLOW_SELECT = False

    @dataclass
    class Clicked(Message):
        """The ruler was clicked, maybe twice, at a flag where there is one."""

        ts_ns: int
        flag: FlagAt | None
        twice: bool

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state: Navigator | None = None
        self.plot: Plot | None = None
        self._drag_from: int | None = None

    def show(self, state: Navigator, plot: Plot) -> None:
        """Draw a state, in line with a plot."""
        self.state, self.plot = state, plot
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Paint the ruler."""
        line = Line(self.size.width, ink(MUTED, PANEL))
        if self.state and self.plot:
            self._paint_ticks(line, self.state, self.plot)
            self._paint_flags(line, self.flags_of(self.state, y), self.plot)
            self._paint_mark(line, self.state, self.plot)
            self._paint_cursor(line, self.state, self.plot)
        return line.strip()

    def _paint_ticks(self, line: Line, state: Navigator, plot: Plot) -> None:
        origin = state.timeline.bounds[0]
        view = plot.viewport
        most = max(plot.width // CELLS_PER_TICK, 1)
        end = plot.left + plot.width
        for at, label in ticks(view.t0 - origin, view.t1 - origin, most):
            x = plot.cell(at + origin)
            line.put(x, "╷", ink(BORDER, PANEL))
            if x + 1 + width_of(label) <= end:
                line.put(x + 1, label, ink(MUTED, PANEL), end)

    def flags_of(self, state: Navigator, y: int) -> Sequence[FlagAt]:
        """The flags that stand on a line of the ruler."""
        del y
        return state.flags

    def _paint_flags(self, line: Line, flags: Sequence[FlagAt], plot: Plot) -> None:
        """Each flag at its time, with as much of its name as there is room for before the next."""
        style, end = ink(FLAG, PANEL, bold=True), plot.left + plot.width
        shown = _cells(flags, plot)
        ends = [x for x, _ in shown[1:]] + [end]
        for (x, flag), after in zip(shown, ends, strict=False):
            line.put(x, FLAG_GLYPH, style)
            room = min(after - x - 2, LONGEST_NAME)
            if room >= min(width_of(flag.name), 3):
                line.put(x + 1, f"{fit(flag.name, room)} ", style, end)

    def _paint_mark(self, line: Line, state: Navigator, plot: Plot) -> None:
        if state.mark is None:
            if state.mark_from is not None:
                line.put(plot.clip(plot.cell(state.mark_from)), "⊢", ink(ACCENT, PANEL, bold=True))
            return
        start, end = (plot.clip(plot.cell(at)) for at in state.mark)
        line.restyle(start, max(end, start + 1), on(MARK))
        shown = f" {duration(state.mark[1] - state.mark[0])} "
        if width_of(shown) <= end - start:
            line.put((start + end - width_of(shown)) // 2, shown, ink(ACCENT, MARK, bold=True))

    def _paint_cursor(self, line: Line, state: Navigator, plot: Plot) -> None:
        if plot.viewport.t0 <= state.cursor_ns < plot.viewport.t1:
            x = plot.cell(state.cursor_ns)
            is_in_label = " " not in line.glyph(x - 1) + line.glyph(x + 1)
            if line.glyph(x) in " ╷" and not is_in_label:
                line.put(x, "▼", ink(ACCENT, PANEL))
            else:
                line.restyle(x, x + 1, ink(PANEL, ACCENT, bold=True))

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Begin to mark."""
        if self.plot and event.x >= self.plot.left:
            event.stop()
            self._drag_from = self.plot.time(event.x)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Mark up to the mouse."""
        if self.plot and self._drag_from is not None:
            self.post_message(Lanes.Marked(self._drag_from, self.plot.time(event.x)))

    def on_click(self, event: events.Click) -> None:
        """Say at which time it was clicked, and at which flag: at its glyph, or next to it."""
        if self.state is None or self.plot is None or event.x < self.plot.left:
            return
        flags = self.flags_of(self.state, event.y)
        near = ((abs(x - event.x), flag) for x, flag in _cells(flags, self.plot))
        distance, flag = min(near, key=lambda each: each[0], default=(2, None))
        found = flag if distance <= 1 else None
        self.post_message(self.Clicked(self.plot.time(event.x), found, event.chain > 1))

    def on_mouse_up(self) -> None:
        """Leave the mark as it is."""
        self._drag_from = None
        self.release_mouse()


def _cells(flags: Sequence[FlagAt], plot: Plot) -> list[tuple[int, FlagAt]]:
    """The flags in view with their cells; of those in one cell the first."""
    view = plot.viewport
    cells: dict[int, FlagAt] = {}
    for flag in flags:
        if view.t0 <= flag.ts_ns < view.t1:
            cells.setdefault(plot.cell(flag.ts_ns), flag)
    return sorted(cells.items(), key=lambda each: each[0])
