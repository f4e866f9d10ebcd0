"""A request's page in the terminal: reached by `enter` and `r` from wherever one is named."""

from __future__ import annotations

from textual.pilot import Pilot

from stepscope.app.tui.widgets.prose import Prose
from tests.app.tui.stage import NARROW, RESULT, app_of, conflict_trace, opened, press, state_of
from tests.tiers import slow
from tests.traces import trace_of


def said(pilot: Pilot[None]) -> str:
    assert app_of(pilot).page == "request"
    return app_of(pilot).query_one("#request-words", Prose).text


async def test_enter_on_a_request_of_the_blame_shows_it_in_full() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "5", "s", "j", "enter")
        second = said(pilot).splitlines()[0]
        await press(pilot, "h")
        assert said(pilot).splitlines()[0] != second
        await press(pilot, "l")
        assert said(pilot).splitlines()[0] == second


async def test_the_request_of_the_lane_at_the_cursor_is_a_key_away() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2")
        timeline = state_of(pilot).timeline
        lane = next(each for each in timeline.lanes if each.section == "requests")
        state_of(pilot).select(lane.id, timeline.bounds[0])
        await press(pilot, "r")
        assert said(pilot).startswith(f"request {lane.label}\n")


async def test_enter_goes_to_its_arrival_in_the_timeline() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "6", "enter")
        assert app_of(pilot).page == "timeline"
        lane = state_of(pilot).lane
        assert lane is not None
        assert state_of(pilot).timeline.lanes[lane].section == "requests"


@slow
async def test_a_click_on_a_moment_of_its_life_goes_to_the_step() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "6")
        prose = app_of(pilot).query_one("#request-words", Prose)
        actions = [p.action for line in prose._lines for p in line if "at_step" in p.action]
        assert actions
        await app_of(pilot).run_action(actions[0])
        assert app_of(pilot).page == "step"


async def test_a_trace_without_requests_says_so() -> None:
    steps = [{"step": 1, "ts_ns": 0, "dur_ns": 5, "kind": "decode"}]
    async with opened(trace_of(steps=steps), RESULT) as pilot:
        await press(pilot, "6")
        assert "names no requests" in said(pilot)


@slow
async def test_what_is_told_at_length_goes_on_below_in_a_small_terminal() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await press(pilot, "6")
        told = said(pilot)
        assert max(map(len, told.splitlines())) <= 80
        assert "…" not in told.split("ITS LIFE")[1]
