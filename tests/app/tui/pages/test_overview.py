"""The overview: what the trace is, what was found, batches over time."""

from __future__ import annotations

from stepscope.app.tui.widgets.chart import AXIS_WIDTH, Chart
from stepscope.app.tui.widgets.prose import Prose
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import (
    RESULT,
    STEP_NS,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_lines,
    screen_text,
    settle,
    state_of,
)


async def test_it_says_in_words_what_the_trace_is_and_what_was_found() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        said = app_of(pilot).query_one("#about", Prose).text
        assert said.startswith("conflict.trace\nproducer      test\nclock         virtual\n")
        assert "run           mix-admission / aic-free" in said
        assert "12 STEPS" in said
        kinds = [line.split()[::2] for line in said.splitlines() if "95.0 µs" in line]
        assert [kind[0] for kind in kinds] == ["prefill", "decode", "mixed"]
        assert "✖ COR001      1  mix-on-occupied-group" in said
        assert "✔ clean       COR002" in said
        assert "○ not         COL001\napplicable" in said
        assert said.index("FINDINGS") < said.index("12 STEPS") < said.index("TABLES")


async def test_the_top_bar_counts_findings_by_severity() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        assert screen_lines(pilot)[0].rstrip().endswith("✖ 1  ▲ 4  ● 1")


async def test_the_charts_follow_the_step_that_is_looked_at() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "right_square_bracket", "right_square_bracket")
        assert "decode 1  ██ prefill 256" in screen_text(pilot)
        await press(pilot, "l")
        assert "decode 2" in screen_text(pilot)
        await press(pilot, "G")
        assert state_of(pilot).cursor_ns == 11 * STEP_NS
        await press(pilot, "h", "g", "g")
        assert state_of(pilot).cursor_ns == 0


async def test_a_click_on_a_bar_goes_to_its_step() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        chart = app_of(pilot).query_one("#tokens", Chart)
        room = chart.size.width - AXIS_WIDTH
        await pilot.click("#tokens", offset=(AXIS_WIDTH + room * 6 // 12 + 2, 4))
        await settle(pilot)
        assert state_of(pilot).cursor_ns == 6 * STEP_NS


async def test_charts_without_numbers_are_not_shown() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        assert app_of(pilot).query_one("#kv").display
    bare = conflict_trace().steps.drop("kv_blocks_total").collect()
    async with opened(Trace.from_tables({"steps": bare}, Manifest("test")), RESULT) as pilot:
        assert not app_of(pilot).query_one("#kv").display
