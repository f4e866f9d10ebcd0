"""What is a mark is seen in the terminal at whole-run zoom, by its glyph alone."""

from __future__ import annotations

from stepscope.app.palette import DECODE, MIXED, PREEMPTED, STATES
from stepscope.app.tui.plot.lane_list import Lanes
from tests.app.timeline.drawn_lanes import of_many_steps
from tests.app.tui.stage import (
    RESULT,
    USUAL,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    state_of,
    text_of,
)


async def test_one_mixed_step_and_one_preemption_of_thousands_have_their_signs() -> None:
    async with opened(of_many_steps(), RESULT, USUAL) as pilot:
        await press(pilot, "2")
        lines = screen_text(pilot).splitlines()

    engine = next(line for line in lines if " engine " in line)
    request = next(line for line in lines if "  a " in line)
    load = next(line for line in lines if line.lstrip().startswith("tokens"))
    assert STATES[MIXED].glyph in engine
    assert STATES[MIXED].glyph in load
    assert STATES[PREEMPTED].glyph in request
    assert "\u258c" in engine, STATES[DECODE]
    assert "mixed" in next(line for line in lines if "1 Overview" in line)


async def test_a_lane_and_a_collapsed_section_have_the_signs_of_their_findings() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2")
        lines = text_of(app_of(pilot).query_one(Lanes)).splitlines()
        about = next(found for found in RESULT.findings if found.code == "COR001")
        lane = state_of(pilot).timeline.lane_of(about)
        row = next(
            at for at, row in enumerate(state_of(pilot).rows) if row.lane and row.lane.id == lane
        )
        assert "✖" in lines[row]

        await pilot.click("#lanes", offset=(5, 2))
        await settle(pilot)
        header = text_of(app_of(pilot).query_one(Lanes)).splitlines()[2]
        assert "▸ core groups" in header
        assert "✖" in header
