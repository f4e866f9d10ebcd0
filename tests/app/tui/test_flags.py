"""Flags in the terminal: put by a key or the mouse, shown where they are, changed, taken away."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from stepscope.app.debug.debugger import Debugger
from stepscope.app.kept.flags import Flag, Flags
from stepscope.app.palette import FLAG_GLYPH
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.plot.time_axis import TimeAxis
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.tui.stage import (
    FRAME_S,
    RESULT,
    STEP_NS,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    state_of,
    until,
)
from tests.tiers import slow
from tests.traces import trace_of


async def typed(pilot: Pilot[None], text: str) -> None:
    """Type into the line that is asked for, in place of what is in it, and press enter."""
    pilot.app.screen.query_one(Input).value = text
    await press(pilot, "enter")


def names(pilot: Pilot[None]) -> list[str]:
    return [flag.name for flag in state_of(pilot).flags]


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))


@slow
async def test_a_flag_is_put_at_the_span_and_is_drawn_on_the_ruler_and_the_map() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2", "j", "l", "l", "y")
        span = state_of(pilot).span
        assert span is not None
        assert "a flag at" in screen_text(pilot)
        await typed(pilot, stories.FLAG_LINE)

        (flag,) = state_of(pilot).flags
        assert (flag.name, flag.note, flag.ts_ns) == (
            stories.FLAG, stories.FLAG_NOTE, span.start_ns,
        )  # fmt: skip
        assert flag.lane == span.lane
        text = screen_text(pilot)
        assert f"{FLAG_GLYPH}{stories.FLAG}" in text
        assert text.count(FLAG_GLYPH) >= 2
        assert stories.FLAG_NOTE.split()[0] in app_of(pilot).query_one("#details", Details).text


@slow
async def test_flags_are_walked_listed_changed_and_taken_away() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        flags = app_of(pilot).own_flags()
        assert flags is not None
        flags.flags.put("early", Flag(STEP_NS + 7, "one"))
        flags.flags.put("late", Flag(5 * STEP_NS + 7, "two"))

        await press(pilot, "2", "u", "u")
        assert state_of(pilot).cursor_ns == 5 * STEP_NS + 7
        await press(pilot, "u")
        assert state_of(pilot).cursor_ns == 5 * STEP_NS + 7
        await press(pilot, "U")
        assert state_of(pilot).cursor_ns == STEP_NS + 7

        await press(pilot, "Y")
        assert "@late" in screen_text(pilot)
        await press(pilot, "j", "e")
        assert pilot.app.screen.query_one(Input).value == "@late two"
        await typed(pilot, "@later three")
        assert names(pilot) == ["early", "later"]
        assert flags.flags.get("later") == Flag(5 * STEP_NS + 7, "three")
        await press(pilot, "Y", "d", "escape")
        assert names(pilot) == ["later"]
        await press(pilot, "y")
        await typed(pilot, "")
        assert names(pilot) == []


async def test_a_double_click_on_the_ruler_puts_one_and_a_click_goes_there() -> None:
    spans = [
        {"ts_ns": at * 1_000_000, "dur_ns": 900_000, "name": f"kernel {at}", "track": "stream 7"}
        for at in range(8)
    ]
    async with opened(trace_of(name="profile.json", spans=spans)) as pilot:
        await press(pilot, "2")
        axis = app_of(pilot).query_one(TimeAxis)
        await pilot.click(axis, offset=(60, 0), times=2)
        await settle(pilot)
        await typed(pilot, "here it begins")
        (flag,) = state_of(pilot).flags
        assert (flag.name, flag.note, flag.lane) == ("flag-1", "here it begins", None)

        await press(pilot, "g")
        await pilot.click(axis, offset=(60, 0))
        await settle(pilot)
        assert state_of(pilot).cursor_ns == flag.ts_ns
        await press(pilot, "g")
        on_map = app_of(pilot).query_one(Minimap)
        await pilot.click(on_map, offset=(on_map._cell_of(flag.ts_ns, state_of(pilot)), 0))
        await settle(pilot)
        assert state_of(pilot).cursor_ns == flag.ts_ns


async def test_what_is_wrong_with_a_line_is_said_and_nothing_is_put() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2", "y")
        await typed(pilot, "@a/b no")
        assert "cannot be the name of a flag" in " ".join(screen_text(pilot).split())
        await press(pilot, "escape")
        assert names(pilot) == []


@slow
@pytest.mark.usefixtures("kept")
async def test_a_flag_that_somebody_else_puts_appears_by_itself(
    sample_traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stepscope.app.tui.flagging_app.LOOK_EVERY_S", FRAME_S)
    path = sample_traces / stories.BEFORE
    async with opened(Trace.open(path)) as pilot:
        await press(pilot, "2")
        Flags(path).put("theirs", Flag(state_of(pilot).timeline.bounds[0], "from the page"))
        await until(pilot, lambda: names(pilot) == ["theirs"])


@pytest.mark.usefixtures("kept")
async def test_a_flag_at_a_step_is_where_the_debugger_stands_and_the_other_way_round(
    sample_traces: Path,
) -> None:
    path = sample_traces / stories.BEFORE
    debugger = Debugger(Trace.open(path))
    debugger.goto("67")
    debugger.flag("seen", "by the debugger")
    async with opened(Trace.open(path)) as pilot:
        await press(pilot, "4", "right_square_bracket")
        await press(pilot, "y")
        await typed(pilot, stories.FLAG_LINE)
        assert names(pilot) == [stories.FLAG, "seen"]

    debugger.goto(f"@{stories.FLAG}")
    assert debugger.position.step == 2
    assert debugger.flags.get(stories.FLAG).note == stories.FLAG_NOTE
