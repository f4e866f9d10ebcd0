"""A line that is kept is the one that would be painted, whatever was done since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from textual.strip import Strip

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.flows.outlines import outlines
from stepscope.app.timeline.moves import MOVES
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.plot.kept_strips import KeptStrips
from stepscope.app.tui.plot.lane_painter import LanePainter, Painting, Shown
from stepscope.app.tui.plot.span_bars import Plot
from tests.app.tui.stage import RESULT, conflict_trace
from tests.tiers import slow

TIMELINE = Timeline.of(conflict_trace())
HEIGHT, LEFT, WIDTH = 24, 20, 80


def painted(state: Navigator, top: int, before: LanePainter | None) -> LanePainter:
    """A painter of a state, with the picture of the one before where that is still right."""
    plot = Plot(LEFT, WIDTH, state.viewport)
    shown = Shown(state.timeline, state.rows, top, HEIGHT, plot, frozenset(state.hidden))
    is_same = before is not None and before.painting.shown.is_same(shown)
    painting = before.painting if before is not None and is_same else Painting.of(shown)
    return LanePainter(state, painting, outlines(state.selection, state.timeline))


def lines(strips: Iterator[Strip]) -> list[list[object]]:
    return [[*strip] for strip in strips]


@slow
@given(st.lists(st.sampled_from(sorted(MOVES)), min_size=1, max_size=12), st.integers(0, 6))
def test_after_any_keys_the_lines_are_those_of_a_painter_that_keeps_none(
    keys: list[str], top: int
) -> None:
    state = Navigator(TIMELINE, findings=RESULT.findings)
    kept, painter = KeptStrips(), None
    for key in keys:
        MOVES[key](state)
        painter = painted(state, top, painter)
        kept.begin(painter)
        rows = range(top, top + HEIGHT)

        shown = lines(strip for row in rows if (strip := kept.strip(row)) is not None)

        assert shown == lines(replace(painter).strip(row) for row in rows)


def test_a_walk_to_the_next_lane_paints_two_lines() -> None:
    state = Navigator(TIMELINE)
    state.move_lane(1)
    painter = painted(state, 0, None)
    kept = KeptStrips()
    kept.begin(painter)
    before = [kept.strip(row) for row in range(HEIGHT)]
    span, state.span = state.span, None

    state.move_lane(1)
    state.span = span
    kept.begin(painted(state, 0, painter))

    after = [kept.strip(row) for row in range(HEIGHT)]
    assert sum(one is not other for one, other in zip(before, after, strict=True)) == 2
