"""What if, asked from the step page: choices, a run behind the screen, what came of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from stepscope.app.tui.pages.step import StepPage
from stepscope.app.tui.screens.what_if import WhatIfScreen
from stepscope.app.tui.widgets.prose import Prose
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.replay.what_if.test_runs import started_as
from tests.app.tui.stage import (
    NARROW,
    PATIENCE_S,
    RESULT,
    WIDE,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    until,
)
from tests.tiers import slow

ENDLESS = "import time; time.sleep(600)"
"""What a run does in place of its own process, until it is ended."""


@pytest.fixture(autouse=True)
def _kept_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def before(sample_traces: Path) -> Trace:
    return Trace.open(sample_traces / stories.BEFORE)


def said(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one(Prose).text


def line(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one(Input).value


async def begin_endless(pilot: Pilot[None]) -> None:
    """Ask for a run that does not end by itself."""
    pilot.app.screen.query_one(Input).value = "requests=41"
    with pytest.MonkeyPatch.context() as patched:
        started_as(patched, "-c", ENDLESS)
        await pilot.press("enter")
        await until(pilot, lambda: "ctrl+x cancel" in screen_text(pilot))


async def type_in(pilot: Pilot[None], words: str) -> None:
    pilot.app.screen.query_one(Input).value = words
    await press(pilot, "enter")


@slow
async def test_choices_are_moved_between_and_taken_into_the_line(before: Trace) -> None:
    async with opened(before, RESULT, WIDE) as pilot:
        await press(pilot, "4", "W")
        assert "--variant after" in screen_text(pilot)
        await press(pilot, "down", "tab")
        assert line(pilot) == "--variant order-only"
        await press(pilot, "up", "tab", *["down"] * 3, "tab", "backspace", "1")
        assert line(pilot) == "--variant after --set requests=41"


async def test_a_choice_that_is_clicked_is_taken(before: Trace) -> None:
    async with opened(before, RESULT, WIDE) as pilot:
        await press(pilot, "4", "W")
        await pilot.click("#what-choices", offset=(12, 2))
        await settle(pilot)
        assert line(pilot) == "--variant order-only"


async def test_what_is_wrong_with_a_line_is_said_above_the_choices(before: Trace) -> None:
    async with opened(before, RESULT, NARROW) as pilot:
        await press(pilot, "4", "W")
        await type_in(pilot, "nobody")
        assert "no variant is called 'nobody'; try before, after" in said(pilot)
        assert "--variant defer-only" in screen_text(pilot)


async def test_a_trace_that_cannot_be_run_otherwise_says_why() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await press(pilot, "4", "W")
        assert "cannot be run otherwise" in said(pilot)
        assert "it is in no file" in said(pilot)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, WhatIfScreen)


async def test_a_run_goes_on_behind_the_closed_screen_and_says_what_became_of_it(
    before: Trace,
) -> None:
    async with opened(before, RESULT, WIDE) as pilot:
        await press(pilot, "4", "W")
        pilot.app.screen.query_one(Input).value = "after"
        await pilot.press("enter", "escape")
        await settle(pilot)
        told = [each.message for each in pilot.app._notifications]
        assert told == ["what if --variant after: they diverge in step 3: batch, row 0: W shows it"]
        await press(pilot, "W")
        assert line(pilot) == "--variant after"
        assert "FINDINGS, GONE AND NEW" in said(pilot)


async def test_one_is_run_at_a_time_and_cancelled_with_a_key_and_a_divergence_is_gone_to(
    before: Trace,
) -> None:
    async with opened(before, RESULT, WIDE) as pilot:
        await press(pilot, "4", "W")
        await begin_endless(pilot)
        await press(pilot, "ctrl+x")
        await until(pilot, lambda: "it was cancelled" in said(pilot))

        await begin_endless(pilot)
        pilot.app.screen.query_one(Input).value = "after"
        await pilot.press("enter")
        await until(pilot, lambda: "still being run" in said(pilot))
        assert "wait for it, or cancel it" in " ".join(said(pilot).split())
        await press(pilot, "ctrl+x")
        what_ifs = app_of(pilot).query_one(StepPage).what_ifs
        assert what_ifs
        await until(pilot, lambda: what_ifs.under_way is None)

        await type_in(pilot, "after")
        assert "they diverge in step 3" in said(pilot)
        await press(pilot, "ctrl+g")
        assert not isinstance(pilot.app.screen, WhatIfScreen)
        session = app_of(pilot).query_one(StepPage).session
        assert session
        assert session.position.step == stories.DIVERGED_AT


@slow
async def test_leaving_the_application_ends_what_is_run(before: Trace) -> None:
    async with opened(before, RESULT, WIDE) as pilot:
        await press(pilot, "4", "W")
        await begin_endless(pilot)
        what_ifs = app_of(pilot).query_one(StepPage).what_ifs
        assert what_ifs
        assert what_ifs.under_way
        process = what_ifs.under_way.process
    assert process
    process.wait(PATIENCE_S)
    assert what_ifs.under_way is None
