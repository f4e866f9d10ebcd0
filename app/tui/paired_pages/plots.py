"""The minimap and the ruler of two traces: a line for A above one for B, under one cursor."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from stepscope.app.paired.flags_of_both import side_of
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.palette import DIVERGED_GLYPH
from stepscope.app.timeline import LoadOverTime
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.cells import Line
from stepscope.app.tui.ink import ACCENT, BACKGROUND, BORDER, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.plot.span_bars import Plot
from stepscope.app.tui.plot.time_axis import CELLS_PER_TICK, TimeAxis
from stepscope.app.units import tick_labels
from stepscope.app.widths import width_of

Diverged = tuple[int, int] | None
"""When both diverge, on the time of A: A, and B."""


class BothMinimap(Minimap):
    """The load of A on the first line, of B on the second, the findings of both on the last."""

    diverged: Diverged = None
    _loads: tuple[LoadOverTime, LoadOverTime] | None = None
    _loaded: tuple[Navigator, int] | None = None

    def render_line(self, y: int) -> Strip:
        """Paint the load of a side with where it diverges, or the findings."""
        state = self.state
        if state is None or y == self.size.height - 1 or y > 1:
            return super().render_line(self.size.height - 1)
        line = Line(self.size.width, ink(TEXT, BACKGROUND))
        line.put(1, f"load {'AB'[y]}", ink(MUTED, BACKGROUND), self.gutter_width)
        self._load = self._load_of(state, y)
        self._paint_load(line, 0, state)
        self._paint_flags(line, state, y)
        self._paint_viewport(line, state)
        if self.diverged:
            style = ink(BACKGROUND, ACCENT, bold=True)
            line.put(self._cell_of(self.diverged[y], state), DIVERGED_GLYPH, style)
        return line.strip()

    def flags_of(self, state: Navigator, y: int) -> Sequence[FlagAt]:
        """Those of a side, over its load."""
        return [flag for flag in state.flags if side_of(flag) == y]

    def _load_of(self, state: Navigator, side: int) -> LoadOverTime:
        width, timeline = self.plot_width * 2, state.timeline
        assert isinstance(timeline, JoinedTimeline)
        if self._loads is None or self._loaded != (state, width):
            self._loaded = state, width
            self._loads = timeline.load_of(0, width), timeline.load_of(1, width)
        return self._loads[side]

    @property
    def load_height(self) -> int:
        """A line for each."""
        return 1


class BothAxis(TimeAxis):
    """Round times of A, below them those of B at the places where they lie."""

    diverged: Diverged = None

    def render_line(self, y: int) -> Strip:
        """Paint the ruler of a side."""
        line = Line(self.size.width, ink(MUTED, PANEL))
        if self.state and self.plot:
            line.put(1, f"time {'AB'[y]}", ink(MUTED, PANEL), self.plot.left)
            if y == 0:
                self._paint_ticks(line, self.state, self.plot)
                self._paint_flags(line, self.flags_of(self.state, y), self.plot)
                self._paint_mark(line, self.state, self.plot)
            else:
                self._paint_ticks_of_b(line, self.state, self.plot)
                self._paint_flags(line, self.flags_of(self.state, y), self.plot)
            self._paint_cursor(line, self.state, self.plot)
            if self.diverged:
                x = self.plot.cell(self.diverged[y])
                if self.plot.left <= x < self.plot.right:
                    line.put(x, DIVERGED_GLYPH, ink(BACKGROUND, ACCENT, bold=True))
        return line.strip()

    def flags_of(self, state: Navigator, y: int) -> Sequence[FlagAt]:
        """Those of a side, on its ruler."""
        return [flag for flag in state.flags if side_of(flag) == y]

    def _paint_ticks_of_b(self, line: Line, state: Navigator, plot: Plot) -> None:
        timeline = state.timeline
        assert isinstance(timeline, JoinedTimeline)
        view, most = plot.viewport, max(plot.width // CELLS_PER_TICK, 1)
        step, last, own, on_a = timeline.ruler_of_b(view.t0, view.t1, most)
        free = plot.left
        for at, label in zip(on_a, tick_labels(own, step, last), strict=True):
            x = plot.cell(at)
            if x < free or x >= plot.right:
                continue
            line.put(x, "╷", ink(BORDER, PANEL))
            free = x + 1
            if x + 1 + width_of(label) <= plot.right:
                free = line.put(x + 1, label, ink(MUTED, PANEL), plot.right) + 1
