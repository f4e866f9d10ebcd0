"""Another trace is opened in place of the one that is looked at: by its path, or a recent one."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from stepscope.app.kept import recent
from stepscope.app.kept.flags import Flag
from tests.app.tui.stage import RESULT, app_of, conflict_trace, opened, press, screen_text, settle
from tests.conftest import ROOT
from tests.tiers import slow

SAMPLE = ROOT / "sample_traces" / "mix-admission-before.trace"


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path / "state"))


async def test_a_trace_is_opened_by_its_path_and_is_looked_at_anew() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        app = app_of(pilot)
        flags = app.own_flags()
        assert flags is not None
        flags.flags.put("own", Flag(5))
        await press(pilot, "2", "O")
        pilot.app.screen.query_one(Input).value = str(SAMPLE)
        await press(pilot, "enter")
        await settle(pilot)

        assert app.trace.name == SAMPLE.name
        assert app.page == "timeline"
        assert app.opened is not None
        assert app.opened.view.flags == ()
        assert app.opened.result is not None
        assert SAMPLE.name in screen_text(pilot)
        assert recent.recent() == [SAMPLE]


@slow
async def test_one_that_was_opened_last_is_chosen_from_the_list() -> None:
    recent.opened(SAMPLE)
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "O")
        assert SAMPLE.name in screen_text(pilot)
        await press(pilot, "enter")
        await settle(pilot)
        assert app_of(pilot).trace.name == SAMPLE.name


async def test_what_cannot_be_opened_is_said_and_the_trace_stays(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "O")
        pilot.app.screen.query_one(Input).value = "/nowhere/at/all"
        await press(pilot, "enter")
        assert "there is no such file" in screen_text(pilot)
        pilot.app.screen.query_one(Input).value = str(tmp_path / "notes.txt")
        await press(pilot, "enter")
        await settle(pilot)
        assert app_of(pilot).trace.name == "conflict.trace"
        assert app_of(pilot).opened is not None
