"""A trace of several ranks: the terminal says whose steps it shows."""

from __future__ import annotations

from stepscope.analyzers.check.run import CheckResult
from tests.app.both_fronts.test_several_ranks import of_two
from tests.app.tui.stage import app_of, opened, press, screen_text, settle, text_of
from tests.tiers import slow


@slow
async def test_the_terminal_says_whose_steps_it_shows() -> None:
    async with opened(of_two(), CheckResult("trace", (), {}, {}, ())) as pilot:
        assert "2 STEPS OF RANK 0" in text_of(app_of(pilot).query_one("#about"))
        await press(pilot, "4")
        assert "step 1 of 2 of rank 0" in screen_text(pilot)


async def test_a_step_that_no_row_tells_of_is_said_to_be_missing_and_ends_nothing() -> None:
    async with opened(of_two(), CheckResult("trace", (), {}, {}, ())) as pilot:
        app_of(pilot).action_at_step(3)
        await settle(pilot)
        told = [each.message for each in pilot.app._notifications]  # run_test shows none
        assert told == ["the trace has no step 3; it has steps 1 to 2"]
        assert pilot.app.is_running
