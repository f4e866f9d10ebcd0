"""The lanes of the timeline: sections, a gutter of names, and spans under a cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from stepscope.app.timeline import Viewport
from stepscope.app.timeline.flows.outlines import Outline
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.timeline.viewport import WHEEL
from stepscope.app.tui.ink import BACKGROUND, TEXT, ink, on
from stepscope.app.tui.plot.kept_strips import KeptStrips
from stepscope.app.tui.plot.lane_painter import LanePainter, Painting, Shown, name_width
from stepscope.app.tui.plot.span_bars import Plot
from stepscope.app.tui.widgets.scrolling import Scrolling

NEAR = 2
"""Rows that are shown on both sides of the lane of a finding."""


MOST_NAME = 44
"""Cells that names of lanes take at most: an id of 36 letters, and what stands beside it."""


class Lanes(Scrolling):
    """Draws the rows of a state that are on the screen, with one query for all of them."""

    @dataclass
    class Selected(Message):
        """A place in a lane was clicked."""

        lane: int
        ts_ns: int

    @dataclass
    class Zoomed(Message):
        """The wheel turned over a time."""

        factor: float
        ts_ns: int

    @dataclass
    class Dragged(Message):
        """The mouse pulled the view to here."""

        viewport: Viewport

    @dataclass
    class Marked(Message):
        """The mouse marked a range."""

        one_ns: int
        other_ns: int
        lanes: tuple[int, ...] = ()

    @dataclass
    class Collapsed(Message):
        """What collapses or expands a section or a group was clicked."""

        key: str

    class Resized(Message):
        """The plot has another width."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state: Navigator | None = None
        self._painting: Painting | None = None
        self._kept = KeptStrips()
        self._drag: tuple[events.MouseDown, Viewport] | None = None
        self._moved = False
        self._widest = 0
        self._outlines: Sequence[Outline] = ()

    def show(self, state: Navigator) -> None:
        """Draw a state."""
        if len(state.rows) != self.virtual_size.height or state is not self.state:
            self.virtual_size = Size(self.room, len(state.rows))
        if state is not self.state:
            self._widest = max((name_width(lane) for lane in state.timeline.lanes), default=0)
        self.state = state
        self.refresh()

    def outline(self, outlines: Sequence[Outline]) -> None:
        """Mark what belongs to the selection."""
        if outlines != self._outlines:
            self._outlines = outlines
            self.refresh()

    def reveal(self, row: int | None) -> None:
        """Scroll so that a row shows; that of a finding with rows on both sides of it."""
        if row is None:
            return
        top, height = self.scroll_offset.y, self.size.height
        is_jump = self.state is not None and self.state.finding is not None
        margin = min(NEAR, (height - 1) // 2) if is_jump else 0
        if not top + margin <= row < top + height - margin:
            self.scroll_to(y=max(row - height // 2, 0), animate=False)
        else:
            self.scroll_to_region(Region(0, row, 1, 1), animate=False, x_axis=False)

    @property
    def gutter_width(self) -> int:
        """Cells on the left that name the lanes: as wide as these, up to a third of the room."""
        most = max(min(self.room // 3, MOST_NAME), 11)
        return min(max(self._widest + 3, 11), most)

    @property
    def plot(self) -> Plot:
        """Where the spans are drawn."""
        assert self.state is not None
        left = self.gutter_width
        return Plot(left, max(self.room - left, 1), self.state.viewport)

    def on_resize(self) -> None:
        """Keep the selected lane in sight; what stands in line with the plot has to follow."""
        if self.state:
            self.virtual_size = Size(self.room, len(self.state.rows))
            self.reveal(self.state.row_of(self.state.lane))
            self.post_message(self.Resized())

    # ── painting ─────────────────────────────────────────────────────────────────────────────

    def render_lines(self, crop: Region) -> list[Strip]:
        """Paint rows, with one query for all lanes on the screen.

        They are whole lines in colours of their own, which nothing of a style sheet is laid over.
        """
        if self.state is not None:
            self._kept.begin(self._painter_of(self.state))
        width, ground = self.outer_size.width, on(BACKGROUND)
        strips = [self.render_line(y).extend_cell_length(width, ground) for y in crop.line_range]
        for each in self.get_line_filters():
            strips = [strip.apply_filter(each, self.background_colors[1]) for strip in strips]
        return [strip.crop(crop.x, crop.right) for strip in strips]

    def _painter_of(self, state: Navigator) -> LanePainter:
        shown = Shown(
            state.timeline, state.rows, self.scroll_offset.y, self.size.height, self.plot,
            frozenset(state.hidden),
        )  # fmt: skip
        if self._painting is None or not self._painting.shown.is_same(shown):
            self._painting = Painting.of(shown)
        return LanePainter(state, self._painting, self._outlines)

    def render_line(self, y: int) -> Strip:
        """Paint a row."""
        strip = self._kept.strip(self.scroll_offset.y + y)
        return Strip.blank(self.room, ink(TEXT, BACKGROUND)) if strip is None else strip

    # ── mouse ────────────────────────────────────────────────────────────────────────────────

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Remember where a drag begins."""
        if self.state:
            event.stop()
            self.capture_mouse()
            self._drag, self._moved = (event, self.state.viewport), False

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Pull the view along, or mark a range while shift is down."""
        if self._drag is None or self.state is None:
            return
        began, viewport = self._drag
        if event.x == began.x and not self._moved:
            return
        self._moved = True
        plot = Plot(self.plot.left, self.plot.width, viewport)
        if began.shift:
            lanes = self._lanes_between(began.y, event.y)
            self.post_message(self.Marked(plot.time(began.x), plot.time(event.x), lanes))
        else:
            self.post_message(self.Dragged(viewport.pan((began.x - event.x) / plot.width)))

    def _lanes_between(self, one: int, other: int) -> tuple[int, ...]:
        """The lanes of the rows between two lines of the screen."""
        assert self.state is not None
        top, first, last = self.scroll_offset.y, min(one, other), max(one, other)
        rows = self.state.rows[max(top + first, 0) : max(top + last + 1, 0)]
        return tuple(lane.id for row in rows for lane in row.lanes)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        """Select what was clicked, unless the mouse was dragged."""
        self.release_mouse()
        was_click = self._drag is not None and not self._moved
        self._drag = None
        if was_click:
            self._click(event.x, self.scroll_offset.y + event.y)

    def _click(self, x: int, index: int) -> None:
        if self.state is None or index >= len(self.state.rows):
            return
        row = self.state.rows[index]
        if row.kind != "lane":
            if row.key:
                self.post_message(self.Collapsed(row.key))
        elif row.lane:
            at = self.plot.time(x) if x >= self.gutter_width else self.state.cursor_ns
            self.post_message(self.Selected(row.lane.id, at))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out where the mouse is; over the names, scroll."""
        self._wheel(event, 1 / WHEEL, 1)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in where the mouse is; over the names, scroll."""
        self._wheel(event, WHEEL, -1)

    def _wheel(self, event: events.MouseEvent, factor: float, lines: int) -> None:
        if self.state is None:
            return
        event.stop()
        event.prevent_default()
        if event.shift:
            self.post_message(self.Dragged(self.state.viewport.pan(0.1 * lines)))
        elif event.x < self.gutter_width:
            self.scroll_relative(y=2 * lines, animate=False)
        else:
            self.post_message(self.Zoomed(factor, self.plot.time(event.x)))
