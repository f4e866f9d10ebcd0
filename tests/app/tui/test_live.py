"""A recording in progress, followed in the terminal until something is found and it ends."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from stepscope.analyzers.summary.slo import slo_of
from stepscope.app.live.follower import Follower
from stepscope.app.live.opener import Opener
from stepscope.app.tui.app import StepscopeApp
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.both_fronts.recording_process import HOSTILE, recording
from tests.app.tui.stage import (
    RESULT,
    WIDE,
    app_of,
    conflict_trace,
    screen_lines,
    screen_text,
    settle,
    state_of,
    until,
)
from tests.conftest import ROOT
from tests.tiers import slow
from tests.traces import trace_of

SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"
LOOK_S = 0.1


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for news ten times a second: it is the news that a test waits for, not the pauses."""
    for name in ("ASK_EVERY_S", "LOOK_AT_DISK_EVERY_S"):
        monkeypatch.setattr(f"stepscope.app.tui.widgets.live_strip.{name}", LOOK_S)
    for name in ("READ_EVERY_S", "CHECK_EVERY_S"):
        monkeypatch.setattr(f"stepscope.app.live.follower.{name}", LOOK_S)


@asynccontextmanager
async def following(path: Path) -> AsyncIterator[Pilot[None]]:
    """A recording in progress on the timeline."""
    follower = Follower(path)
    follower.refresh()
    app = StepscopeApp(follower.look().trace, None, "timeline", follower=follower)
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: app_of(pilot).opened is not None)
        yield pilot


def strip(pilot: Pilot[None]) -> str:
    """The line below the tabs."""
    return screen_lines(pilot)[2]


async def shows(pilot: Pilot[None], *texts: str) -> None:
    """Wait until all of these are on the screen."""
    await until(pilot, lambda: all(text in screen_text(pilot) for text in texts))


async def test_follow_a_live_run_until_a_finding(tmp_path: Path) -> None:
    with recording(tmp_path / "run.trace") as engine:
        engine.steps(stories.LIVE_STEPS)
        async with following(tmp_path / "run.trace") as pilot:
            await shows(pilot, stories.LIVE, stories.NEWEST, f"{stories.LIVE_STEPS} of 40")

            engine.steps(stories.MORE_STEPS)
            await shows(pilot, "50 of 50", stories.NEWEST)
            view = state_of(pilot)
            assert view.viewport.t1 == view.timeline.bounds[1]

            engine.give_block_twice()
            await shows(pilot, stories.TWICE_AT)
            await pilot.press("n")
            await shows(pilot, stories.ELSEWHERE)
            selected = state_of(pilot).selection.finding
            assert selected is not None
            assert selected.code == stories.TWICE

            engine.close()
            await shows(pilot, stories.ENDED, stories.WHOLE, stories.TWICE_AT)
            at = state_of(pilot).viewport
            await pilot.press("L")
            await until(
                pilot, lambda: app_of(pilot).result is not None and not app_of(pilot).follower
            )
            assert app_of(pilot).trace.manifest.closed
            assert state_of(pilot).viewport == at
            assert [each.code for each in app_of(pilot).result.findings] == [stories.TWICE]  # type: ignore[union-attr]  # it is there


async def test_scrolling_back_leaves_the_newest_step_and_a_key_returns(tmp_path: Path) -> None:
    with recording(tmp_path / "run.trace") as engine:
        engine.steps(200)
        async with following(tmp_path / "run.trace") as pilot:
            await shows(pilot, stories.NEWEST)
            await pilot.press("a")
            await shows(pilot, stories.ELSEWHERE)
            looked_at = state_of(pilot).viewport

            engine.steps(10)
            await until(pilot, lambda: "1,050" in strip(pilot) or "420 rows" in strip(pilot))
            assert state_of(pilot).viewport == looked_at

            await pilot.press("F")
            await shows(pilot, stories.NEWEST)
            view = state_of(pilot)
            assert view.viewport.t1 == view.timeline.bounds[1]


async def test_nothing_comes_while_it_is_held(tmp_path: Path) -> None:
    with recording(tmp_path / "run.trace") as engine:
        engine.steps(40)
        async with following(tmp_path / "run.trace") as pilot:
            await shows(pilot, "80 rows")
            await pilot.press("H")
            await shows(pilot, stories.HELD)
            await until(pilot, lambda: not app_of(pilot).strip.is_asking)
            engine.steps(5)
            await asyncio.sleep(5 / 60)
            opened = app_of(pilot).opened
            assert opened is not None
            assert opened.trace.num_rows("steps") == 40

            await pilot.press("H")
            await shows(pilot, "90 rows")


async def test_what_needs_every_row_says_so_a_hostile_name_is_text_and_a_kill_is_told(
    tmp_path: Path,
) -> None:
    with recording(tmp_path / "run.trace") as engine:
        engine.steps(40)
        async with following(tmp_path / "run.trace") as pilot:
            for page in "456":
                await pilot.press(page)
                await shows(pilot, "not told while a recording is followed")

            await pilot.press("2")
            engine.arrive()
            await shows(pilot, "script>")
            assert "\x1b" not in screen_text(pilot)
            assert HOSTILE not in screen_text(pilot)

            engine.kill()
            await shows(pilot, stories.KILLED)


@slow
async def test_a_directory_that_is_deleted_is_told_in_one_line(tmp_path: Path) -> None:
    with recording(tmp_path / "run.trace") as engine:
        engine.steps(40)
        async with following(tmp_path / "run.trace") as pilot:
            await shows(pilot, "80 rows")
            shutil.rmtree(tmp_path / "run.trace")
            await shows(pilot, "■ gone from the disk", "80 rows")
            await pilot.press("L")
            await shows(pilot, "no such file")


@slow
async def test_a_start_after_this_one_is_named(tmp_path: Path) -> None:
    with recording(tmp_path / "a.trace") as engine:
        engine.steps(40)
        async with following(tmp_path / "a.trace") as pilot:
            with recording(tmp_path / "b.trace"):
                engine.close()
                await shows(pilot, "another recording has begun: stepscope tui", "b.trace")


@slow
async def test_a_file_that_was_replaced_is_offered_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.trace"
    with recording(path) as engine:
        engine.steps(40)
        engine.close()
    app = StepscopeApp(Trace.open(path), RESULT, "timeline")
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await shows(pilot, "of 40")
        shutil.rmtree(path)
        with recording(path) as engine:
            engine.steps(20)
            engine.close()
        await shows(pilot, stories.CHANGED)
        await pilot.press("L")
        await shows(pilot, "of 20")
        await until(pilot, lambda: app_of(pilot).result is not None)
        assert stories.CHANGED not in screen_text(pilot)


async def test_where_nothing_is_recorded_there_is_nothing_to_follow() -> None:
    app = StepscopeApp(trace_of(steps=[{"step": 1, "ts_ns": 1, "kind": "decode"}]), RESULT)
    async with app.run_test(size=WIDE, notifications=True) as pilot:
        await until(pilot, lambda: app_of(pilot).opened is not None)
        await pilot.press("F")
        await shows(pilot, "nothing is recorded here any more")


@slow
async def test_a_recording_that_is_opened_from_within_is_followed_under_the_same_slo(
    tmp_path: Path,
) -> None:
    slo = slo_of("ttft=1s")
    app = StepscopeApp(conflict_trace(), RESULT, "timeline", slo)
    with recording(tmp_path / "one.trace") as one, recording(tmp_path / "other.trace") as other:
        one.steps(40)
        other.steps(10)
        async with app.run_test(size=WIDE) as pilot:
            await settle(pilot)
            await open_path(pilot, tmp_path / "one.trace")
            await shows(pilot, stories.LIVE, stories.NEWEST, "40 of 40", "one.trace")
            one.steps(10)
            await shows(pilot, "50 of 50")
            assert app.opened is not None
            assert app.opened.slo == slo

            await open_path(pilot, tmp_path / "other.trace")
            await shows(pilot, stories.LIVE, "10 of 10", "other.trace")
            one.steps(10)
            other.steps(10)
            await shows(pilot, "20 of 20", "other.trace")

            await open_path(pilot, SAMPLE)
            await shows(pilot, SAMPLE.name)
            await settle(pilot)
            assert app.follower is None
            assert stories.LIVE not in strip(pilot)


@slow
async def test_told_to_follow_nothing_it_reads_a_recording_once(tmp_path: Path) -> None:
    app = StepscopeApp(conflict_trace(), RESULT, "timeline", opener=Opener(follows=False))
    with recording(tmp_path / "run.trace") as engine:
        engine.steps(40)
        async with app.run_test(size=WIDE) as pilot:
            await settle(pilot)
            await open_path(pilot, tmp_path / "run.trace")
            await until(pilot, lambda: app.trace.name == "run.trace" and app.opened is not None)
            await settle(pilot)
            assert app.follower is None
            assert "of 40" in screen_text(pilot)


async def open_path(pilot: Pilot[None], path: Path) -> None:
    """Open what lies at a path by the key for it."""
    await pilot.press("O")
    await until(pilot, lambda: bool(pilot.app.screen.query(Input)))
    pilot.app.screen.query_one(Input).value = str(path)
    await pilot.press("enter")
