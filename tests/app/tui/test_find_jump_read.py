"""Find a conflict, jump to it, read why: by keyboard and by mouse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.tui.plot.lane_list import Lanes
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.app.tui.widgets.table import Table
from tests.app.tui.stage import (
    CONFLICT,
    NARROW,
    RESULT,
    STARVED,
    WIDE,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_lines,
    screen_text,
    settle,
    state_of,
    text_of,
)
from tests.tiers import sampled, slow
from tests.traces import trace_of


@slow
@pytest.mark.parametrize("size", sampled([WIDE, NARROW], [NARROW]), ids=str)
async def test_by_keyboard_from_anywhere(size: tuple[int, int]) -> None:
    async with opened(conflict_trace(), RESULT, size) as pilot:
        assert app_of(pilot).page == "overview"
        await press(pilot, "n")
        state = state_of(pilot)
        assert app_of(pilot).page == "timeline"
        assert state.selection.finding is CONFLICT
        assert state.viewport.t0 < 522_000
        assert state.viewport.t1 > 535_000
        marked = [line for line in screen_lines(pilot) if line.startswith("▌") and "✖" in line]
        assert len(marked) == 1, "the selected lane is on the screen, with the mark on it"
        assert "AIV1" in marked[0]
        text = screen_text(pilot)
        assert "COR001 mix-on-occupied-group" in text
        assert "qk_pv 0/1" in text, "the evidence"


@slow
async def test_the_details_answer_what_why_and_how_to_fix() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "n")
        said = app_of(pilot).query_one("#details", Details).text
        parts = ["COR001", "EVIDENCE", "WHY, AS RECORDED", "STATE BEFORE · AFTER", "HOW TO FIX"]
        assert [said.index(part) for part in parts] == sorted(said.index(part) for part in parts)
        assert "held idle     13.0 µs" in said
        assert "admitted: group 1: AIC free, AIVs not consulted" in " ".join(said.split())
        beside, group = said.split("STATE BEFORE · AFTER")[1].split("GROUP 1")
        before_after = [line.split() for line in beside.splitlines() if line.startswith("AIC")]
        assert before_after == [["AIC", "idle", "→", "qk_pv"]]
        assert all(kind in group for kind in ("AIC", "AIV0", "AIV1"))


async def test_from_the_table_of_findings_by_keyboard_the_rule_s_page_one_key_away() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "3", "e")
        assert "What it finds" in screen_text(pilot)
        await press(pilot, "escape")
        assert "What it finds" not in screen_text(pilot)

        await press(pilot, "j")
        assert "req-4 was passed over" in app_of(pilot).query_one("#finding", Details).text
        await press(pilot, "enter")
        assert app_of(pilot).page == "timeline"
        assert state_of(pilot).selection.finding is STARVED
        assert any(line.startswith("▌ req-4") for line in screen_lines(pilot))


@pytest.mark.parametrize("size", sampled([WIDE, NARROW], [WIDE]), ids=str)
async def test_by_a_click_on_a_finding(size: tuple[int, int]) -> None:
    async with opened(conflict_trace(), RESULT, size) as pilot:
        await press(pilot, "2")
        await pilot.click("#finding-list", offset=(20, 2))
        await settle(pilot)
        assert state_of(pilot).selection.finding is STARVED
        details = app_of(pilot).query_one("#details", Details)
        assert details.is_on_screen
        assert "STV002 fcfs-inversion" in details.text
        assert "serve the oldest first" in details.text


@slow
async def test_by_clicks_on_the_findings_page_the_map_and_the_overview_and_lists_follow() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "3")
        for _ in range(2):
            await pilot.click("#all-findings", offset=(20, 2))
            await settle(pilot)
        assert app_of(pilot).page == "timeline"
        assert state_of(pilot).selection.finding is STARVED

        minimap = app_of(pilot).query_one(Minimap)
        last = minimap.size.height - 1
        x = text_of(minimap).splitlines()[last].index("✖")
        await pilot.click("#minimap", offset=(x, last))
        await settle(pilot)
        assert state_of(pilot).selection.finding is CONFLICT

        await press(pilot, "1")
        about = app_of(pilot).query_one("#about")
        y = next(n for n, line in enumerate(text_of(about).splitlines()) if "STV002" in line)
        await pilot.click("#about", offset=(6, y))
        await settle(pilot)
        assert app_of(pilot).page == "timeline"
        assert state_of(pilot).selection.finding is STARVED
        assert app_of(pilot).query_one("#finding-list", Table).cursor == 1
        await press(pilot, "3")
        assert app_of(pilot).query_one("#all-findings", Table).cursor == 1


@slow
async def test_links_of_a_finding_open_the_rule_s_page_and_lead_to_its_step() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "n")
        details = app_of(pilot).query_one("#details", Details)
        y = details.text.splitlines().index("explain COR001  step 6  ")
        await pilot.click("#details", offset=(4, y))
        await settle(pilot)
        assert "Why it hurts" in screen_text(pilot)

        await press(pilot, "escape", "3")
        details = app_of(pilot).query_one("#finding", Details)
        y = details.text.splitlines().index("explain COR001  step 6  ")
        await pilot.click("#finding", offset=(20, y))
        await settle(pilot)
        assert app_of(pilot).page == "step"
        assert "step 6 of 12" in screen_text(pilot)


@slow
async def test_the_rules_own_findings_can_be_jumped_to() -> None:
    trace = conflict_trace()
    found = check(trace).findings[0]
    async with opened(trace) as pilot:
        await press(pilot, "n")
        assert app_of(pilot).result is not None, "the rules ran in a thread"
        assert state_of(pilot).selection.finding == found
        said = " ".join(app_of(pilot).query_one("#details", Details).text.split())
        assert found.message in said
        assert found.fix in said


@slow
async def test_what_does_not_fit_is_scrolled_to_and_a_lane_far_down_comes_into_view() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await press(pilot, "n")
        assert "HOW TO FIX" not in screen_text(pilot)
        await press(pilot, *["J"] * 6)
        assert "HOW TO FIX" in screen_text(pilot)
        await press(pilot, *["K"] * 6)
        assert "COR001 mix-on-occupied-group" in screen_text(pilot)

        await press(pilot, "n")
        lanes = app_of(pilot).query_one(Lanes)
        row = state_of(pilot).row_of(state_of(pilot).lane)
        assert row is not None
        assert lanes.scroll_offset.y <= row < lanes.scroll_offset.y + lanes.size.height


async def test_the_lane_of_a_finding_is_shown_with_the_lanes_on_both_sides_of_it() -> None:
    requests = [f"req-{number:02}" for number in range(40)]
    rows = [
        {"step": 1, "ts_ns": 0, "request": request, "event": "arrive", "prompt_len": 8}
        for request in requests
    ]
    async with opened(trace_of(lifecycle=rows), None, WIDE) as pilot:
        await press(pilot, "2")
        lanes, state = app_of(pilot).query_one(Lanes), state_of(pilot)
        at_the_bottom = state.rows[lanes.size.height - 1].lane
        assert at_the_bottom is not None
        request = requests[at_the_bottom.id]
        state.findings = [replace(STARVED, request=request, ts_ns=0, end_ns=1)]

        await press(pilot, "n")

        row = state.row_of(state.lane)
        assert row == lanes.size.height - 1
        assert row < lanes.scroll_offset.y + lanes.size.height - 2
