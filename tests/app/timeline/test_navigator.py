"""What is being looked at, without a screen."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline import Composition, Timeline
from stepscope.app.timeline.moves import MOVES
from stepscope.app.timeline.navigator import Navigator
from tests.app.tui.stage import CONFLICT, RESULT, STEP_NS, conflict_trace
from tests.traces import trace_of


@cache
def timeline() -> Timeline:
    return Timeline.of(conflict_trace())


def looking() -> Navigator:
    composition = Composition.of(conflict_trace())
    return Navigator(timeline(), RESULT.findings, composition=composition)


def lane_called(group: str, label: str) -> int:
    return next(lane.id for lane in timeline().lanes if (lane.group, lane.label) == (group, label))


def walked(view: Navigator, by: int) -> str | None:
    view.step_span(by)
    return view.span.label if view.span else None


def test_it_begins_with_the_whole_trace_and_the_first_lane() -> None:
    view = looking()
    assert (view.viewport.t0, view.viewport.t1) == timeline().bounds
    assert view.lane == timeline().lanes[0].id


@given(st.lists(st.sampled_from(sorted(MOVES)), max_size=30))
def test_no_sequence_of_keys_leaves_the_trace(names: list[str]) -> None:
    view = looking()
    for name in names:
        MOVES[name](view)
        first, last = timeline().bounds
        assert first <= view.viewport.t0 < view.viewport.t1 <= last
        assert first <= view.cursor_ns < last
        assert view.lane is None or view.row_of(view.lane) is not None or view.collapsed


def test_zooming_keeps_the_time_under_the_mouse_where_it_is() -> None:
    view = looking()
    at = 5 * STEP_NS
    before = (at - view.viewport.t0) / view.viewport.span_ns
    view.zoom(4, at)
    assert abs((at - view.viewport.t0) / view.viewport.span_ns - before) < 0.01


def test_jumping_to_a_finding_centres_it_and_selects_its_lane_and_span() -> None:
    view = looking()
    view.next_finding(1)
    assert view.selection.finding is CONFLICT
    assert view.lane == lane_called("group 1", "AIV1")
    assert view.span is not None
    assert view.span.label == "act"
    middle = (CONFLICT.ts_ns + CONFLICT.end_ns) // 2 if CONFLICT.ts_ns and CONFLICT.end_ns else 0
    assert abs(view.viewport.centre_ns - middle) < STEP_NS // 100


def test_jumping_expands_the_section_of_the_finding() -> None:
    view = looking()
    view.toggle_collapsed("core groups")
    assert view.row_of(lane_called("group 1", "AIV1")) is None
    view.next_finding(1)
    assert view.row_of(view.lane) is not None


def test_next_and_previous_finding_go_around() -> None:
    view = looking()
    for expected in (0, 1, 2, 0):
        view.next_finding(1)
        assert view.finding == expected
    view.next_finding(-1)
    assert view.finding == 2


def test_previous_finding_begins_with_the_last() -> None:
    view = looking()
    view.next_finding(-1)
    assert view.finding == len(RESULT.findings) - 1


def test_without_findings_there_is_nowhere_to_jump() -> None:
    view = Navigator(timeline(), ())
    assert view.next_finding(1) is False
    assert Navigator(timeline(), None).next_finding(1) is False


def test_a_finding_without_a_time_leaves_the_range_as_it_is() -> None:
    view = looking()
    view.zoom(8, 3 * STEP_NS)
    before = view.viewport
    view.jump(2)
    assert view.viewport == before


def test_spans_are_walked_in_order_and_back() -> None:
    view = looking()
    view.lane = lane_called("group 0", "AIC")
    assert [walked(view, by) for by in (1, 1, 1, -1)] == ["up", "qk_pv", "up", "qk_pv"]


def test_walking_stops_at_the_last_span() -> None:
    view = looking()
    view.lane = lane_called("group 0", "AIC")
    while view.step_span(1):
        pass
    assert view.span
    assert view.span.start_ns == 11 * STEP_NS + 40_000


def test_f_centres_and_the_second_time_fits() -> None:
    view = looking()
    view.select(lane_called("group 0", "AIC"), 5 * STEP_NS + 1_000)
    view.zoom(4, view.cursor_ns)
    width = view.viewport.span_ns
    view.centre_then_fit()
    assert view.viewport.span_ns == width
    view.centre_then_fit()
    assert view.span
    assert view.viewport.span_ns < 2 * (view.span.end_ns - view.span.start_ns)


def test_a_mark_is_begun_and_ended_and_escape_undoes_one_thing_at_a_time() -> None:
    view = looking()
    view.move_to(STEP_NS)
    view.mark_here()
    view.select(lane_called("group 0", "AIC"), 3 * STEP_NS + 1_000)
    view.mark_here()
    assert view.mark == (STEP_NS, 3 * STEP_NS + 18_000)
    left = []
    while view.clear():
        left.append((view.mark is not None, view.span is not None))
    assert left == [(False, True), (False, False)]


def test_what_is_in_view_is_marked_whatever_was_begun_or_marked_before() -> None:
    view = looking()
    view.zoom(4, 3 * STEP_NS)
    view.mark_here()
    view.mark_view()
    assert view.mark == (view.viewport.t0, view.viewport.t1) != view.timeline.bounds
    assert view.mark_from is None
    view.whole()
    view.mark_view()
    assert view.mark == view.timeline.bounds


def test_a_mark_may_be_made_backwards() -> None:
    view = looking()
    view.set_mark(900, 100)
    assert view.mark == (100, 900)


def test_a_pinned_lane_stands_on_top_until_it_is_let_go() -> None:
    view = looking()
    lane = lane_called("", "req-2")
    view.lane = lane
    view.toggle_pin()
    assert [row.section for row in view.rows[:2]] == ["pinned", "pinned"]
    assert view.row_of(lane) == 1
    view.toggle_pin()
    assert view.rows[0].section == "steps"


def test_of_a_collapsed_section_the_header_stays() -> None:
    view = looking()
    view.toggle_collapsed("core groups")
    shown = [row for row in view.rows if row.section == "core groups"]
    assert [row.lane for row in shown] == [None]


def test_moving_between_lanes_stops_at_both_ends() -> None:
    view = looking()
    for _ in range(100):
        view.move_lane(1)
    assert view.lane == timeline().lanes[-1].id
    for _ in range(100):
        view.move_lane(-1)
    assert view.lane == timeline().lanes[0].id


def test_moving_to_another_lane_selects_what_it_shows_at_the_cursor() -> None:
    view = looking()
    view.select(lane_called("group 0", "AIC"), 5_000)
    view.move_lane(2)
    assert view.span
    assert (view.span.label, view.lane) == ("act", lane_called("group 0", "AIV1"))


def test_a_walk_keeps_the_zoom_and_a_jump_frames() -> None:
    view = looking()
    view.zoom(4, 0)
    width = view.viewport.span_ns
    view.next_step(1)
    assert view.viewport.span_ns == width
    view.next_finding(1)
    assert CONFLICT.ts_ns is not None
    assert CONFLICT.end_ns is not None
    assert view.viewport.span_ns == 5 * (CONFLICT.end_ns - CONFLICT.ts_ns)
    view.visit(view.timeline.find("step 7")[0])
    assert view.viewport.span_ns == min(5 * (STEP_NS - 5_000), 12 * STEP_NS)


def test_a_collapsed_group_is_one_row_that_stands_for_all_its_lanes() -> None:
    view = looking()
    view.lane = lane_called("group 0", "AIV0")
    view.collapse_group()
    row = view.rows[view.row_of(view.lane) or 0]
    assert (row.kind, row.group, len(row.lanes)) == ("strip", "group 0", 3)
    view.move_lane(1)
    assert view.lane == lane_called("group 1", "AIC")
    view.move_lane(-1)
    assert view.lane == lane_called("group 0", "AIC")
    view.collapse_group()
    assert [row.kind for row in view.rows[:3]] == ["section", "lane", "section"]


def test_the_span_before_a_selected_one_is_another_one_wherever_it_was_clicked() -> None:
    view = looking()
    view.select(lane_called("group 0", "AIC"), 5 * STEP_NS + 5_000)
    assert view.span
    selected = view.span.start_ns
    view.step_span(-1)
    assert view.span.start_ns < selected


def test_a_hit_is_visited_where_it_is() -> None:
    view = looking()
    hit = view.timeline.find("step 7")[0]
    view.visit(hit)
    assert view.cursor_ns == 6 * STEP_NS
    assert view.span
    assert view.span.ref[0] == "steps"


def test_an_empty_trace_can_be_moved_about_in() -> None:
    view = Navigator(Timeline.of(trace_of()), ())
    for move in MOVES.values():
        move(view)
    assert (view.lane, view.rows) == (None, [])
