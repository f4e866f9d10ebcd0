"""The cursor's line goes through what is free, and through no name of a span."""

from __future__ import annotations

from stepscope.app.timeline import Timeline, Viewport
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.plot.lane_painter import LanePainter, Painting, Shown
from stepscope.app.tui.plot.span_bars import Plot
from tests.tiers import slow
from tests.traces import trace_of

NAME = "MATMUL + ADD"


def drawn(cursor_ns: int) -> str:
    span = {"ts_ns": 400, "dur_ns": 1_600, "track": "t", "name": NAME, "form": "slice"}
    other = {**span, "ts_ns": 0, "dur_ns": 2_000, "track": "u"}
    state = Navigator(Timeline.of(trace_of(spans=[span, other])))
    state.cursor_ns = cursor_ns
    plot = Plot(0, 40, Viewport(0, 2_000))
    shown = Shown(state.timeline, state.rows, 0, len(state.rows), plot, frozenset())
    lane = next(lane.id for lane in state.timeline.lanes if lane.label == "t")
    row = next(at for at, row in enumerate(state.rows) if row.lane and row.lane.id == lane)
    return LanePainter(state, Painting.of(shown)).strip(row).text


@slow
def test_it_leaves_the_blanks_of_a_name_alone() -> None:
    for cell in range(8, 40):
        assert NAME in drawn(cell * 50), cell


def test_it_is_seen_where_nothing_runs() -> None:
    assert drawn(100)[2] == "┊"
