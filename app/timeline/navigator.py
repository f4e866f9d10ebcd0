"""Moving about a timeline: what both fronts look at, and all that a key can do to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.timeline.area.selection import Pick, Selection
from stepscope.app.timeline.area.which_lanes import area_lanes
from stepscope.app.timeline.composition import Composition
from stepscope.app.timeline.find import Hit
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.lane_rows import keys_over
from stepscope.app.timeline.picture import SpanView
from stepscope.app.timeline.shown_rows import ShownRows
from stepscope.app.timeline.viewport import Viewport

RULES_RUN = "The rules are running …"


@dataclass(slots=True)
class Navigator(ShownRows):
    """A range, a cursor (a time in a lane), what is selected there, marks, pins, what is collapsed.

    A jump to something that was named (a finding, a hit) frames it; a walk to what is next to the
    cursor (a step, a span, a lane) keeps the zoom. Times are ns of the trace's clock.

    `findings` is None until the rules have run; `without_findings` says why none are shown. Without
    a `composition` there are no steps to walk. `hits_ns` is when a condition is met that is looked
    for, sorted. `marked_lanes` are those of the mark, none where they are the section's; `pick` is
    the row of its sums whose spans are shown, `shows_path` that the path to the span is. `flags`
    are what a user put somewhere, by time.
    """

    findings: Sequence[Finding] | None = None
    without_findings: str = RULES_RUN
    composition: Composition | None = None
    lane: int | None = None
    span: SpanView | None = None
    finding: int | None = None
    cursor_ns: int = 0
    mark_from: int | None = None
    mark: tuple[int, int] | None = None
    marked_lanes: tuple[int, ...] = ()
    pick: Pick | None = None
    shows_path: bool = False
    is_placed: bool = False
    hits_ns: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    flags: tuple[FlagAt, ...] = ()
    viewport: Viewport = field(init=False)

    def __post_init__(self) -> None:
        self.viewport = Viewport(*self.timeline.bounds)
        self.cursor_ns = self.timeline.bounds[0]
        if self.lane is None and self.timeline.lanes:
            self.lane = 0

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

    def frame(self, start_ns: int, end_ns: int) -> None:
        """Show what was jumped to with some time around it."""
        self.viewport = Viewport.framing(start_ns, end_ns, self.timeline.bounds)

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

    def move_lane(self, by: int) -> None:
        """Select the next lane below (1) or above (-1), and what it shows at the cursor."""
        shown = [row.lanes for row in self.rows if row.lanes and not row.is_pinned]
        if shown:
            places = (
                at for at, lanes in enumerate(shown) for each in lanes if each.id == self.lane
            )
            place = min(max(next(places, -1) + by, 0), len(shown) - 1)
            self.select(shown[place][0].id, self.cursor_ns)

    def collapse_section(self) -> None:
        """Collapse or expand the section of the cursor's lane."""
        if self.lane is not None:
            self.toggle_collapsed(keys_over(self.timeline.lanes[self.lane])[0])

    def collapse_group(self) -> None:
        """Collapse or expand the group of the cursor's lane, where it has one."""
        if self.lane is not None and self.timeline.lanes[self.lane].group:
            self.toggle_collapsed(keys_over(self.timeline.lanes[self.lane])[1])

    def toggle_pin(self) -> None:
        """Pin the cursor's lane on top, or unpin it."""
        if self.lane is None:
            return
        if self.lane in self.pins:
            self.pins.remove(self.lane)
        else:
            self.pins.append(self.lane)
        self._rows = None

    # ── selection ────────────────────────────────────────────────────────────────────────────

    def select(self, lane: int, ts_ns: int) -> None:
        """Put the cursor at a time in a lane, and select the span that is there."""
        self.lane, self.cursor_ns, self.is_placed = lane, ts_ns, True
        self.span = self.timeline.at(lane, ts_ns)
        self.finding = None

    def step_span(self, by: int) -> bool:
        """Select the next (1) or previous (-1) span in the lane; False when there is none."""
        if self.lane is None:
            return False
        seek = self.timeline.next_span if by > 0 else self.timeline.previous_span
        # What begins at the cursor counts as passed only when it is selected.
        found = seek(self.lane, self.span.start_ns if self.span else self.cursor_ns - by)
        if found is None:
            return False
        self.span, self.finding, self.cursor_ns = found, None, found.start_ns
        self.bring_into_view(found.start_ns)
        return True

    def go_to(self, span: SpanView) -> None:
        """Select a span and see to it that it shows, at the same zoom."""
        self.expand_to(span.lane)
        self.lane, self.span, self.finding, self.cursor_ns = span.lane, span, None, span.start_ns
        self.bring_into_view(span.start_ns)

    def toggle_path(self) -> None:
        """Show the path that leads to the selected span, or no longer."""
        self.shows_path = not self.shows_path

    def move_to(self, ts_ns: int) -> None:
        """Put the cursor at a time and see to it that it shows; nothing is selected any more."""
        self.cursor_ns = ts_ns
        self.span = self.finding = None
        self.bring_into_view(ts_ns)

    def mark_here(self) -> None:
        """Begin a range at the cursor, or end the one that was begun."""
        if self.mark_from is None:
            self.mark_from, self.mark = self.cursor_ns, None
            return
        here = self.span.end_ns if self.span else self.cursor_ns
        self.set_mark(self.mark_from, here)

    def set_mark(self, one_ns: int, other_ns: int, lanes: Sequence[int] = ()) -> None:
        """Mark the range between two times, on some lanes; without any, those of the section."""
        self.mark = (min(one_ns, other_ns), max(one_ns, other_ns))
        self.mark_from = self.pick = None
        self.marked_lanes = tuple(sorted(set(lanes)))

    def mark_view(self) -> None:
        """Mark the time that is in view."""
        self.set_mark(self.viewport.t0, self.viewport.t1)

    def clear(self) -> bool:
        """Clear what was picked, else the mark, the selection, the filter; False without any."""
        if self.pick:
            self.pick = None
        elif self.mark or self.mark_from is not None:
            self.mark = self.mark_from = None
            self.marked_lanes = ()
        elif self.span or self.finding is not None:
            self.span = self.finding = None
            self.shows_path = self.is_placed = False
        elif self.hidden:
            self.hidden = set()
        else:
            return False
        return True

    @property
    def selection(self) -> Selection:
        """What is selected now."""
        found = self.findings[self.finding] if self.findings and self.finding is not None else None
        section = None if self.lane is None else self.timeline.lanes[self.lane].section
        point = (self.lane, self.cursor_ns) if self.is_placed and self.lane is not None else None
        lanes = area_lanes(self.timeline, self.lane, self.marked_lanes) if self.mark else ()
        return Selection(
            self.mark, found, self.span, section, lanes, self.shows_path, self.pick, point,
            tuple(flag for flag in self.flags if flag.is_at(self.cursor_ns, self.lane)),
        )  # fmt: skip

    # ── steps, findings, hits ────────────────────────────────────────────────────────────────

    @property
    def step_index(self) -> int | None:
        """Position of the step in which the cursor is; None before the first."""
        return self.composition.index_at(self.cursor_ns) if self.composition else None

    def next_step(self, by: int) -> bool:
        """Go to the step after (1) or before (-1) that of the cursor; False at the ends."""
        index = (-1 if self.step_index is None else self.step_index) + by
        if self.composition is None or not 0 <= index < len(self.composition):
            return False
        self.move_to(int(self.composition.formed_ns[index]))
        return True

    def next_finding(self, by: int) -> bool:
        """Jump to the next (1) or previous (-1) finding, around the end; False without findings."""
        if not self.findings:
            return False
        here = self.finding if self.finding is not None else (-1 if by > 0 else 0)
        self.jump(range(len(self.findings))[(here + by) % len(self.findings)])
        return True

    def jump(self, index: int) -> None:
        """Frame a finding, and select its lane (expanded) and what ran there."""
        if not self.findings:
            return
        found = self.findings[index]
        lane = self.timeline.lane_of(found)
        ts_ns = self.cursor_ns if found.ts_ns is None else found.ts_ns
        self._go(lane, ts_ns)
        if found.ts_ns is not None:
            self.frame(found.ts_ns, found.end_ns or found.ts_ns)
        else:
            self.span = None
        self.mark = self.mark_from = None
        self.finding = index

    def visit(self, hit: Hit) -> None:
        """Frame something that was searched for, and select it."""
        self._go(hit.lane, hit.ts_ns)
        self.frame(hit.ts_ns, hit.end_ns)

    def visit_span(self, lane: int, ts_ns: int) -> None:
        """Frame the span that a lane shows at a time, and select it."""
        self._go(lane, ts_ns)
        if self.span:
            self.frame(self.span.start_ns, self.span.end_ns)

    def _go(self, lane: int | None, ts_ns: int) -> None:
        self.span = self.finding = None
        self.cursor_ns = ts_ns
        if lane is not None:
            self.expand_to(lane)
            self.select(lane, ts_ns)
