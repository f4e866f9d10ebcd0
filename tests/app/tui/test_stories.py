"""Stories on the step page: keys lead to a conflict, to who lost a block, to why one waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from stepscope.analyzers.check.run import check
from stepscope.app.tui.widgets.prose import Prose
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.timeline.lanes.test_slots_and_queues import recycling
from tests.app.tui.pages.test_stops import look_for, step_bar
from tests.app.tui.pages.test_timeline import lanes_of
from tests.app.tui.stage import (
    RESULT,
    WIDE,
    app_of,
    opened,
    press,
    screen_text,
    settle,
    text_of,
)
from tests.tiers import slow


def shown(pilot: Pilot[None], side: str) -> str:
    return " ".join(app_of(pilot).query_one(f"#step-{side}", Prose).text.split())


async def test_find_a_conflict_and_go_back_to_who_lost_the_block(sample_traces: Path) -> None:
    before = Trace.open(sample_traces / stories.BEFORE)
    async with opened(before, RESULT, WIDE) as pilot:
        await look_for(pilot, stories.TAKEN_AWAY)
        assert stories.ALL_TAKEN_AWAY in step_bar(pilot)
        await press(pilot, "c")
        assert stories.FIRST_AT in step_bar(pilot)
        assert stories.FIRST_TAKEN_AWAY in step_bar(pilot)
        assert stories.FIRST_ROW in shown(pilot, "right")
        assert f"{stories.VERDICT}: {stories.REASON}" in shown(pilot, "left")

        await press(pilot, "G", "B", "ctrl+u", "enter")
        await look_for(pilot, stories.WATCHED)
        for hit, step, row in (stories.TAKEN, stories.LOST):
            await press(pilot, "C")
            assert hit in step_bar(pilot)
            assert step in step_bar(pilot)
            assert row in shown(pilot, "right")


@slow
async def test_what_the_fix_changed_is_that_the_condition_is_met_nowhere(
    sample_traces: Path,
) -> None:
    after = Trace.open(sample_traces / stories.AFTER)
    async with opened(after, RESULT, WIDE) as pilot:
        await look_for(pilot, stories.TAKEN_AWAY)
        assert stories.NOWHERE in screen_text(pilot)


async def test_why_a_request_waits_is_told_with_the_row_that_proves_it(sample_traces: Path) -> None:
    before = Trace.open(sample_traces / stories.BEFORE)
    async with opened(before, RESULT, WIDE) as pilot:
        await press(pilot, "colon", *str(stories.WAITS_AT), "enter", "4")
        while f"WHY {stories.WHO}".lower() not in shown(pilot, "right").lower():
            await press(pilot, "j")
        assert stories.CAUSE in shown(pilot, "right")
        assert f"{stories.LINK} {stories.WHY}" in shown(pilot, "right")

        await press(pilot, "o")
        assert stories.PROOF in shown(pilot, "right")


async def test_one_click_on_a_waiting_bar_says_why_it_waits(sample_traces: Path) -> None:
    crowd = Trace.open(sample_traces / stories.CROWD)
    async with opened(crowd, check(crowd), WIDE) as pilot:
        await press(pilot, "2")
        lines = text_of(lanes_of(pilot)).splitlines()
        y = next(n for n, line in enumerate(lines) if stories.WAITER in line)
        await pilot.click("#lanes", offset=(40, y))
        await settle(pilot)

        told = " ".join(app_of(pilot).query_one("#details", Prose).text.split())
        assert stories.WAITED in told
        for fact in stories.WAITED_FOR:
            assert fact.lower() in told.lower()


async def test_a_click_on_the_head_of_the_waiting_queue_says_why_it_waited_there() -> None:
    trace = recycling()
    async with opened(trace, check(trace), WIDE) as pilot:
        await press(pilot, "2")
        lines = text_of(lanes_of(pilot)).splitlines()
        y = next(n for n, line in enumerate(lines) if "position 0" in line)
        await pilot.click("#lanes", offset=(40, y))
        await settle(pilot)

        about = " ".join(app_of(pilot).query_one("#details", Prose).text.split())
        assert "b was at position 0 of the waiting queue for 30 ns" in about
        assert any("slot 0" in line for line in lines)


@slow
async def test_what_the_fix_would_have_changed_is_asked_from_the_step_of_a_finding(
    sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = sample_traces / stories.BEFORE
    before = Trace.open(path)
    async with opened(before, check(before), WIDE) as pilot:
        while stories.ASKED_BEFORE not in app_of(pilot).query_one("#details", Prose).text:
            await press(pilot, "n")
        await press(pilot, "4", "W", "tab")
        screen = pilot.app.screen
        assert screen.query_one(Input).value == stories.ASKED
        await press(pilot, "enter")

        told = " ".join(screen.query_one(Prose).text.split()).lower()
        for each in stories.WHAT_IF:
            assert each.format(trace=path).lower() in told
        await press(pilot, "ctrl+g")
        assert stories.DIVERGED_PLACE in step_bar(pilot)


async def test_what_the_gpu_did_in_a_step_is_told_with_its_kernels(tmp_path: Path) -> None:
    profile = Trace.open(stories.gpu_profile(tmp_path))
    async with opened(profile, check(profile), WIDE) as pilot:
        await press(pilot, "right_square_bracket", "right_square_bracket", "4")

        assert "step 2" in step_bar(pilot)
        told = shown(pilot, "right").lower()
        assert [each for each in stories.ON_GPU if each.lower() not in told] == []
        assert stories.NOT_IN_IT not in told
