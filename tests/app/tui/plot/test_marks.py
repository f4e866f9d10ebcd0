"""What is a mark is seen in the terminal at whole-run zoom, by its glyph alone."""

from __future__ import annotations

from stepscope.app.palette import DECODE, MIXED, PREEMPTED, STATES
from tests.app.timeline.drawn_lanes import of_many_steps
from tests.app.tui.stage import RESULT, USUAL, opened, press, screen_text


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
