"""Search: type a name or a number, choose, and be there."""

from __future__ import annotations

from textual.widgets import Input

from stepscope.app.tui.widgets.details_pane import Details
from tests.app.tui.stage import (
    NARROW,
    RESULT,
    STEP_NS,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    state_of,
)
from tests.tiers import slow


@slow
async def test_a_request_a_task_and_a_step_are_found() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "slash", *"req-3")
        assert "request req-3" in screen_text(pilot)
        await press(pilot, "enter")
        state = state_of(pilot)
        assert app_of(pilot).page == "timeline"
        assert state.lane is not None
        assert state.timeline.lanes[state.lane].label == "req-3"

        await press(pilot, "slash", *"QK_pv", "enter")
        span = state_of(pilot).span
        assert span is not None
        assert span.label == "qk_pv"
        assert app_of(pilot).query_one("#details", Details).text.startswith("qk_pv")

        await press(pilot, "slash", "9", "enter")
        assert state_of(pilot).cursor_ns == 8 * STEP_NS


async def test_enter_may_come_before_the_hits_do() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await pilot.press("slash")
        await pilot.pause()
        pilot.app.screen.query_one(Input).value = "step 5"
        await pilot.press("enter")
        await settle(pilot)
        assert state_of(pilot).cursor_ns == 4 * STEP_NS


async def test_another_hit_is_chosen_with_the_arrows_and_by_mouse() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "slash", *"req")
        await press(pilot, "down", "down", "enter")
        state = state_of(pilot)
        assert state.lane is not None
        assert state.timeline.lanes[state.lane].label == "req-3"

        await press(pilot, "slash", *"req")
        await pilot.click("#hits", offset=(12, 2))
        await settle(pilot)
        state = state_of(pilot)
        assert state.lane is not None
        assert state.timeline.lanes[state.lane].label == "req-2"


async def test_what_nobody_is_called_is_said() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await press(pilot, "slash", *"zzz")
        assert "Nothing has that name." in screen_text(pilot)
        await press(pilot, "enter")
        assert "Nothing has that name." in screen_text(pilot), "there is nothing to choose"
        await press(pilot, "escape")
        assert app_of(pilot).page == "overview"


@slow
async def test_a_colon_asks_for_a_step_and_stays_on_the_step_page() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "4", "colon", "7", "enter")
        assert app_of(pilot).page == "step"
        assert "step 7 of 12 · 0.600 ms" in screen_text(pilot)
