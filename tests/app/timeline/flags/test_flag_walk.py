"""Flags on a timeline: in their lanes, gone to in order, and put where something is selected."""

from __future__ import annotations

from stepscope.app.kept.flags import Flag, Flags
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.flags.flag_at import FlagsOnLanes, lane_key
from stepscope.app.timeline.flags.flag_walk import (
    flag_at_time,
    flag_here,
    flag_of_request,
    flag_there,
    next_flag,
)
from stepscope.app.timeline.moves import MOVES
from stepscope.app.timeline.navigator import Navigator
from tests.app.tui.stage import RESULT, STEP_NS, conflict_trace
from tests.traces import trace_of

LANE = ("requests", "", "req-2")


def looking(**flags: Flag) -> tuple[Navigator, FlagsOnLanes]:
    timeline = Timeline.of(conflict_trace())
    kept = Flags(None)
    for name, flag in flags.items():
        kept.put(name, flag)
    placed = FlagsOnLanes(kept, timeline.lanes)
    return Navigator(timeline, RESULT.findings, flags=placed.now), placed


def walked(view: Navigator, by: int) -> list[int]:
    found = []
    while next_flag(view, by):
        found.append(view.cursor_ns)
    return found


def test_flags_are_gone_to_by_time_those_of_one_place_at_once() -> None:
    view, _ = looking(b=Flag(300), a=Flag(200, lane=LANE), c=Flag(300, "again"), d=Flag(900))

    assert walked(view, 1) == [200, 300, 900]
    assert walked(view, -1) == [300, 200]
    assert view.lane is not None
    assert lane_key(view.timeline.lanes[view.lane]) == LANE


def test_flags_of_lanes_at_the_same_time_are_each_gone_to() -> None:
    other = ("requests", "", "req-3")
    view, _ = looking(one=Flag(200, lane=LANE), two=Flag(200, lane=other))

    assert next_flag(view, 1)
    first = view.lane
    assert next_flag(view, 1)
    assert (view.lane, first) == tuple(flag.lane for flag in reversed(view.flags))


def test_one_of_a_lane_that_is_not_there_is_a_time_and_others_are_found_as_they_come() -> None:
    view, placed = looking(gone=Flag(100, lane=("requests", "", "nobody")))
    assert placed.now[0].lane is None
    version = placed.version

    placed.flags.put("new", Flag(5))

    assert [flag.name for flag in placed.now] == ["new", "gone"]
    assert placed.version == version + 1
    assert placed.now is placed.now
    assert view.flags != placed.now


def test_a_flag_is_put_at_the_finding_the_span_or_the_cursor_and_else_in_the_middle() -> None:
    view, _ = looking()
    view.jump(0)
    assert flag_here(view).ts_ns == RESULT.findings[0].ts_ns
    view, _ = looking()
    view.step_span(1)
    assert view.span is not None
    assert flag_here(view) == Flag(
        view.span.start_ns, lane=lane_key(view.timeline.lanes[view.span.lane])
    )
    view, _ = looking()
    view.move_to(3 * STEP_NS + 5)
    assert flag_here(view) == Flag(3 * STEP_NS + 5)
    view.look_at(view.viewport.fit(8 * STEP_NS, 9 * STEP_NS, margin=0))
    assert flag_here(view) == Flag(view.viewport.centre_ns)
    assert flag_at_time(view, 10**18).ts_ns == view.timeline.bounds[1] - 1


def test_a_flag_of_a_request_is_where_its_lane_begins() -> None:
    view, _ = looking()
    flag = flag_of_request(view, 0, "req-2")

    assert flag is not None
    assert flag.lane == LANE
    assert flag_of_request(view, 0, "nobody") is None


def test_where_one_is_already_it_is_that_which_is_changed() -> None:
    view, _ = looking(here=Flag(200, lane=LANE), other=Flag(201))
    assert flag_there(view, flag_here(view)) is None
    MOVES["next-flag"](view)

    found = flag_there(view, flag_here(view))

    assert found is not None
    assert found.name == "here"


def test_a_trace_without_lanes_has_flags_that_are_times() -> None:
    timeline = Timeline.of(trace_of())
    kept = Flags(None)
    kept.put("x", Flag(3))
    view = Navigator(timeline, flags=FlagsOnLanes(kept, timeline.lanes).now)

    assert next_flag(view, 1)
    assert flag_here(view).lane is None
