"""Stories on the step page: keys alone lead to a conflict, to who lost a block, and to its fix."""

from __future__ import annotations

from pathlib import Path

from stepscope.app.palette import HIT_GLYPH
from stepscope.app.tui.widgets.prose import Prose
from stepscope.ingest.trace import Trace
from tests.app.tui.pages.test_stops import look_for, step_bar
from tests.app.tui.stage import RESULT, WIDE, app_of, opened, press, screen_text

TAKEN_AWAY = "lifecycle: event = 'preempt' and cause = 'another bucket runs'"


async def test_find_a_conflict_and_go_back_to_who_lost_the_block(sample_traces: Path) -> None:
    before = Trace.open(sample_traces / "fcfs-preemption-before.trace")
    async with opened(before, RESULT, WIDE) as pilot:
        await look_for(pilot, TAKEN_AWAY)
        assert f"{HIT_GLYPH} 229 hits" in step_bar(pilot)
        await press(pilot, "c")
        assert "step 66 of 88" in step_bar(pilot)
        left = app_of(pilot).query_one("#step-left", Prose).text
        assert "preempted: another bucket runs" in " ".join(left.split())

        await press(pilot, "G", "B", "ctrl+u", "enter")
        await look_for(pilot, "watch block 2")
        await press(pilot, "C")
        assert "step 8" in step_bar(pilot), "it goes on changing hands up to the end"
        assert f"{HIT_GLYPH} hit 2" in step_bar(pilot)


async def test_what_the_fix_changed_is_that_the_condition_is_met_nowhere(
    sample_traces: Path,
) -> None:
    after = Trace.open(sample_traces / "fcfs-preemption-after.trace")
    async with opened(after, RESULT, WIDE) as pilot:
        await look_for(pilot, TAKEN_AWAY)
        assert "no row of this trace meets it" in screen_text(pilot)
