"""Where to stop: the step page takes what the prompt's `break` takes, and goes from hit to hit."""

from __future__ import annotations

from textual.pilot import Pilot

from stepscope.analyzers.check.run import CheckResult
from stepscope.app.palette import HIT_GLYPH
from stepscope.app.tui.plot.minimap import Minimap
from tests.app.debug.small_traces import hits_on_two_ranks
from tests.app.tui.stage import (
    NARROW,
    RESULT,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    text_of,
)
from tests.tiers import slow

NOTHING_FOUND = CheckResult("trace", (), {}, {}, ())


async def look_for(pilot: Pilot[None], words: str, key: str = "B") -> None:
    """Open the step page and type where to stop, or what else a key asks for."""
    await press(pilot, "4", key)
    for each in words:
        await pilot.press({" ": "space"}.get(each, each))
    await press(pilot, "enter")
    await settle(pilot)


def step_bar(pilot: Pilot[None]) -> str:
    return text_of(app_of(pilot).query_one("#step-bar"))


@slow
async def test_a_condition_is_looked_for_forward_and_back() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await look_for(pilot, "steps: num_waiting = 1 and step > 5")
        assert f"{HIT_GLYPH} 2 hits" in step_bar(pilot)

        await press(pilot, "c")
        assert "step 6 of 12" in step_bar(pilot)
        assert f"{HIT_GLYPH} hit 1 of 2" in step_bar(pilot)
        await press(pilot, "c")
        assert "step 7 of 12" in step_bar(pilot)
        await press(pilot, "C")
        assert "step 6 of 12" in step_bar(pilot)


@slow
async def test_hits_are_marked_over_the_load_of_the_whole_run() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await look_for(pilot, "break passed-over")
        await press(pilot, "2")
        assert text_of(app_of(pilot).query_one(Minimap)).count(HIT_GLYPH) == 4

        await press(pilot, "4", "B", "ctrl+u", "enter")
        await press(pilot, "2")
        assert HIT_GLYPH not in text_of(app_of(pilot).query_one(Minimap))


async def test_a_decision_and_what_changes_can_be_looked_for() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await look_for(pilot, "watch block 5")
        assert f"{HIT_GLYPH} 1 hit" in step_bar(pilot), "block 5 was claimed before the first batch"

        await press(pilot, "C")
        assert f"{HIT_GLYPH} hit 1 of 1" in step_bar(pilot)


async def test_a_wrong_condition_is_said_beside_what_is_possible_and_can_be_mended() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await look_for(pilot, "steps: num_wating > 1")
        said = " ".join(screen_text(pilot).split())
        assert "num_waiting" in said
        assert "it can be" in said

        await press(pilot, "ctrl+u", *"deferred", "enter")
        assert "no row of this trace meets it" in screen_text(pilot)
        await press(pilot, "escape", "c")
        assert "it can be" in screen_text(pilot), "nothing is looked for yet, so c asks"


@slow
async def test_a_hit_on_another_rank_is_gone_to_and_the_page_says_whose_step_it_shows() -> None:
    async with opened(hits_on_two_ranks(), NOTHING_FOUND) as pilot:
        await look_for(pilot, "steps: ts_ns >= 3000000")
        assert f"{HIT_GLYPH} 4 hits on 2 ranks" in step_bar(pilot)

        await press(pilot, "c")
        assert "step 3 of 4 of rank 0" in step_bar(pilot)
        await press(pilot, "c")
        assert "step 1 of 2 of rank 1" in step_bar(pilot)
        assert f"{HIT_GLYPH} hit 2 of 4 on 2 ranks" in step_bar(pilot)
        await press(pilot, "c")
        assert "step 2 of 2 of rank 1" in step_bar(pilot)
        await press(pilot, "C", "C")
        assert "step 3 of 4 of rank 0" in step_bar(pilot)


async def test_another_rank_is_walked_by_its_own_steps_and_follows_by_time() -> None:
    async with opened(hits_on_two_ranks(), NOTHING_FOUND) as pilot:
        await press(pilot, "4", "G")
        assert "step 4 of 4 of rank 0" in step_bar(pilot)

        await press(pilot, "R")
        assert "step 2 of 2 of rank 1" in step_bar(pilot)
        await press(pilot, "left_square_bracket")  # back to where that step was formed
        assert "step 2 of 2 of rank 1 · 2.400 ms" in step_bar(pilot)
        await press(pilot, "left_square_bracket")
        assert "step 1 of 2 of rank 1 · 2.200 ms" in step_bar(pilot)
        await press(pilot, "R")
        assert "step 3 of 4 of rank 0 · 2.200 ms" in step_bar(pilot)
        await press(pilot, "left_square_bracket")
        assert "step 2 of 4 of rank 0" in step_bar(pilot)


async def test_a_click_on_a_mark_of_hits_goes_to_the_first_of_them() -> None:
    async with opened(hits_on_two_ranks(), NOTHING_FOUND) as pilot:
        await look_for(pilot, "steps: rank = 1")
        await press(pilot, "2")
        minimap = app_of(pilot).query_one(Minimap)
        at = text_of(minimap).splitlines()[0].index(HIT_GLYPH)

        await pilot.click(Minimap, offset=(at, 0))
        await settle(pilot)

        assert "step 1 of 2 of rank 1" in step_bar(pilot)
        assert f"{HIT_GLYPH} hit 1 of 2" in step_bar(pilot)


async def test_beside_a_mark_of_hits_a_click_looks_there() -> None:
    async with opened(hits_on_two_ranks(), NOTHING_FOUND) as pilot:
        await look_for(pilot, "steps: rank = 1")
        await press(pilot, "2")
        minimap = app_of(pilot).query_one(Minimap)

        await pilot.click(Minimap, offset=(minimap.gutter_width + 1, 0))
        await settle(pilot)

        assert app_of(pilot).page == "timeline"
