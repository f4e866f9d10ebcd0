"""What the user is looking at: range, lane, span, finding, mark, pins, filters; no screen in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.timeline import Hit, SpanView, Timeline, Viewport
from stepscope.app.timeline.rows import Row, arranged

ZOOM = 1.6
PAN = 0.2
# A finding that is jumped to takes this share of the view; without a length, so much of the trace
# is shown around it.
CONFLICT_SHARE = 0.2
MOMENT_SHARE = 0.02


@dataclass(frozen=True, slots=True)
class Selection:
    """What is selected, in the order in which it counts: a mark, a finding, a span."""

    mark: tuple[int, int] | None = None
    finding: Finding | None = None
    span: SpanView | None = None
    section: str | None = None


@dataclass(slots=True)
class ViewState:
    """The one thing that keys and mouse change and that every widget of the timeline draws.

    `findings` is None until the rules have run; `without_findings` says why none are shown.
    """

    timeline: Timeline
    findings: Sequence[Finding] | None = None
    without_findings: str = "The rules are running …"
    lane: int | None = None
    span: SpanView | None = None
    finding: int | None = None
    cursor_ns: int = 0
    mark_from: int | None = None
    mark: tuple[int, int] | None = None
    pins: list[int] = field(default_factory=list)
    folded: set[str] = field(default_factory=set)
    hidden: set[int] = field(default_factory=set)
    viewport: Viewport = field(init=False)
    rows: list[Row] = field(init=False)

    def __post_init__(self) -> None:
        self.viewport = Viewport(*self.timeline.bounds)
        self.cursor_ns = self.timeline.bounds[0]
        self.arrange()
        if self.lane is None:
            self.lane = next((row.lane.id for row in self.rows if row.lane), None)

    # ── range ────────────────────────────────────────────────────────────────────────────────

    def zoom(self, factor: float, at_ns: int | None = None) -> None:
        """Show `factor` times less (more, below 1), keeping a time where it is on the screen."""
        at = self._anchor() if at_ns is None else at_ns
        self.look_at(self.viewport.zoom(factor, at))

    def pan(self, fraction: float) -> None:
        """Move the view by a fraction of its width."""
        self.look_at(self.viewport.pan(fraction))

    def whole(self) -> None:
        """Show the whole trace."""
        self.viewport = Viewport(*self.timeline.bounds)

    def look_at(self, viewport: Viewport) -> None:
        """Show a range, as far as the trace reaches."""
        self.viewport = viewport.clamp(self.timeline.bounds)

    def centre_on(self, ts_ns: int) -> None:
        """Bring a time into the middle without zooming."""
        self.look_at(self.viewport.centre(ts_ns))

    def bring_into_view(self, ts_ns: int) -> None:
        """Centre on a time unless it is on the screen already."""
        if not self.viewport.t0 <= ts_ns < self.viewport.t1:
            self.centre_on(ts_ns)

    def centre_then_fit(self) -> None:
        """Centre on the selection; when it is centred already, fit it."""
        start, end = self.selected_range()
        before = self.viewport
        self.centre_on((start + end) // 2)
        if self.viewport == before and end > start:
            self.look_at(self.viewport.fit(start, end, margin=0.25))

    def selected_range(self) -> tuple[int, int]:
        """The mark, else the selected span, else the moment of the cursor."""
        if self.mark:
            return self.mark
        if self.span:
            return self.span.start_ns, self.span.end_ns
        return self.cursor_ns, self.cursor_ns

    def _anchor(self) -> int:
        view = self.viewport
        return self.cursor_ns if view.t0 <= self.cursor_ns < view.t1 else view.centre_ns

    # ── lanes ────────────────────────────────────────────────────────────────────────────────

    def arrange(self) -> None:
        """Lay out the rows anew: pins or folds have changed."""
        self.rows = arranged(self.timeline.lanes, self.pins, self.folded)

    def row_of(self, lane: int | None) -> int | None:
        """The row that shows a lane, a pinned one first."""
        return next(
            (y for y, row in enumerate(self.rows) if row.lane and row.lane.id == lane), None
        )

    def move_lane(self, by: int) -> None:
        """Select the next lane below (1) or above (-1)."""
        shown = [row.lane.id for row in self.rows if row.lane and not row.is_pinned]
        if not shown:
            return
        here = shown.index(self.lane) if self.lane in shown else -1
        self.select_lane(shown[min(max(here + by, 0), len(shown) - 1)])

    def select_lane(self, lane: int | None) -> None:
        """Select a lane; a span selected in another one is let go."""
        self.lane = lane
        if self.span and self.span.lane != lane:
            self.span = None

    def toggle_fold(self, section: str) -> None:
        """Fold a section, or unfold it."""
        self.folded ^= {section}
        self.arrange()

    def fold_here(self) -> None:
        """Fold or unfold the section of the selected lane."""
        if section := self.section_of(self.lane):
            self.toggle_fold(section)

    def toggle_pin(self) -> None:
        """Pin the selected lane on top, or let it go."""
        if self.lane is None:
            return
        if self.lane in self.pins:
            self.pins.remove(self.lane)
        else:
            self.pins.append(self.lane)
        self.arrange()

    def toggle_state(self, state: int) -> None:
        """Hide the spans of a state, or show them again."""
        self.hidden ^= {state}

    def section_of(self, lane: int | None) -> str | None:
        """The section that a lane stands in."""
        return next((each.section for each in self.timeline.lanes if each.id == lane), None)

    # ── selection ────────────────────────────────────────────────────────────────────────────

    def select(self, lane: int, ts_ns: int) -> None:
        """Select what is at a time in a lane, or nothing but the moment."""
        self.select_lane(lane)
        self.span = self.timeline.at(lane, ts_ns)
        self.finding = None
        self.cursor_ns = ts_ns

    def step_span(self, by: int) -> bool:
        """Select the next (1) or previous (-1) span in the lane; False when there is none."""
        if self.lane is None:
            return False
        seek = self.timeline.next_span if by > 0 else self.timeline.previous_span
        # What begins at the cursor counts as passed only when it is selected.
        found = seek(self.lane, self.cursor_ns if self.span else self.cursor_ns - by)
        if found is None:
            return False
        self.span, self.finding, self.cursor_ns = found, None, found.start_ns
        self.bring_into_view(found.start_ns)
        return True

    def move_to(self, ts_ns: int) -> None:
        """Put the cursor at a time and see to it that it shows."""
        self.cursor_ns = ts_ns
        self.span = None
        self.bring_into_view(ts_ns)

    def mark_here(self) -> None:
        """Begin a range at the cursor, or end the one that was begun."""
        if self.mark_from is None:
            self.mark_from, self.mark = self.cursor_ns, None
            return
        here = self.span.end_ns if self.span else self.cursor_ns
        self.set_mark(self.mark_from, here)

    def set_mark(self, one_ns: int, other_ns: int) -> None:
        """Mark the range between two times."""
        self.mark = (min(one_ns, other_ns), max(one_ns, other_ns))
        self.mark_from = None

    def clear(self) -> bool:
        """Let go of the mark, else the selection, else the filter; False when nothing is left."""
        if self.mark or self.mark_from is not None:
            self.mark = self.mark_from = None
        elif self.span or self.finding is not None:
            self.span = self.finding = None
        elif self.hidden:
            self.hidden = set()
        else:
            return False
        return True

    @property
    def selection(self) -> Selection:
        """What is selected now."""
        found = self.findings[self.finding] if self.findings and self.finding is not None else None
        return Selection(self.mark, found, self.span, self.section_of(self.lane))

    # ── findings ─────────────────────────────────────────────────────────────────────────────

    def next_finding(self, by: int) -> bool:
        """Jump to the next (1) or previous (-1) finding, around the end; False without findings."""
        if not self.findings:
            return False
        here = self.finding if self.finding is not None else (-1 if by > 0 else 0)
        self.jump(range(len(self.findings))[(here + by) % len(self.findings)])
        return True

    def jump(self, index: int) -> None:
        """Centre on a finding, select its lane (unfolded) and what ran there."""
        if not self.findings:
            return
        found = self.findings[index]
        self.mark = self.mark_from = None
        lane = self.timeline.lane_of(found)
        if lane is not None:
            self._unfold(lane)
            self.select_lane(lane)
        self.span = None
        if found.ts_ns is not None:
            self._frame(found.ts_ns, found.end_ns or found.ts_ns)
            self.span = self.timeline.at(lane, found.ts_ns) if lane is not None else None
        self.finding = index

    def visit(self, hit: Hit) -> None:
        """Go to something that was searched for, and select it."""
        if hit.lane is not None:
            self._unfold(hit.lane)
            self.select_lane(hit.lane)
        self.finding = None
        self.move_to(hit.ts_ns)
        if hit.lane is not None:
            self.span = self.timeline.at(hit.lane, hit.ts_ns)

    def _frame(self, start_ns: int, end_ns: int) -> None:
        first, last = self.timeline.bounds
        half = round((end_ns - start_ns) / CONFLICT_SHARE / 2) or round(
            (last - first) * MOMENT_SHARE / 2
        )
        middle = (start_ns + end_ns) // 2
        self.cursor_ns = start_ns
        self.look_at(Viewport(middle - max(half, 1), middle + max(half, 1)))

    def _unfold(self, lane: int) -> None:
        section = self.section_of(lane)
        if section in self.folded:
            self.folded.discard(section)
            self.arrange()


MOVES: dict[str, Callable[[ViewState], object]] = {
    "zoom_in": lambda view: view.zoom(ZOOM),
    "zoom_out": lambda view: view.zoom(1 / ZOOM),
    "pan_left": lambda view: view.pan(-PAN),
    "pan_right": lambda view: view.pan(PAN),
    "lane_down": lambda view: view.move_lane(1),
    "lane_up": lambda view: view.move_lane(-1),
    "next_span": lambda view: view.step_span(1),
    "previous_span": lambda view: view.step_span(-1),
    "centre": ViewState.centre_then_fit,
    "mark": ViewState.mark_here,
    "pin": ViewState.toggle_pin,
    "fold": ViewState.fold_here,
    "start": lambda view: view.move_to(view.timeline.bounds[0]),
    "end": lambda view: view.move_to(view.timeline.bounds[1] - 1),
    "whole": ViewState.whole,
}
"""What the keys of the timeline do, by name."""
