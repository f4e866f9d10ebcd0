"""A value over the run on the step page, as the prompt's `value` draws it."""

from __future__ import annotations

from stepscope.app.tui.widgets.prose import Prose
from tests.app.tui.pages.test_stops import look_for
from tests.app.tui.stage import (
    NARROW,
    NUM_STEPS,
    RESULT,
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
async def test_a_value_is_drawn_with_a_mark_at_where_one_stands() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await look_for(pilot, "value kv_blocks_free", "V")
        right = app_of(pilot).query_one("#step-right", Prose)
        told, line, mark = right.text.splitlines()[:3]
        assert told.split() == ["kv_blocks_free", *["min", "16", "max", "40", "here", "40"]]
        assert (line.strip()[0], line.strip()[-1]) == ("█", "▁")
        assert mark.rstrip() == "^"

        await press(pilot, "G")
        told, _, mark = right.text.splitlines()[:3]
        assert told.endswith("here 16")
        assert mark.index("^") > right.room * (NUM_STEPS - 2) // NUM_STEPS


async def test_a_click_on_the_line_of_a_value_goes_there() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await look_for(pilot, "num_running", "V")
        first = state_of(pilot).cursor_ns
        await pilot.click("#step-right", offset=(30, 1))
        await settle(pilot)
        assert state_of(pilot).cursor_ns > first
        mark = app_of(pilot).query_one("#step-right", Prose).text.splitlines()[2]
        assert abs(mark.index("^") - 29) <= 1


@slow
async def test_a_wrong_value_is_said_and_an_empty_one_draws_nothing() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await look_for(pilot, "num_wating", "V")
        assert "num_waiting" in screen_text(pilot)
        await press(pilot, "escape")
        await look_for(pilot, "gpu_busy_ns", "V")
        assert "null throughout" in screen_text(pilot)
        await press(pilot, "ctrl+u", "enter")
        assert "null throughout" not in screen_text(pilot)
