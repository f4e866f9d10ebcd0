"""The overview: what the trace is, what was found, batches over time."""

from __future__ import annotations

import re

from stepscope.app.tui.widgets.chart import AXIS_WIDTH, Chart
from stepscope.app.tui.widgets.prose import Prose
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.trace import Trace
from tests.analyzers.summary.test_gpu_use import kernel
from tests.app.tui.stage import (
    NARROW,
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
from tests.tiers import slow
from tests.traces import trace_of


@slow
async def test_it_says_in_words_what_the_trace_is_and_what_was_found() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        said = app_of(pilot).query_one("#about", Prose).text
        assert said.startswith("conflict.trace\nproducer         test\nclock            virtual\n")
        assert "run              mix-admission / aic-free" in said
        assert "12 STEPS" in said
        kinds = [line.split()[::2] for line in said.splitlines() if "95.0 µs" in line]
        assert [kind[0] for kind in kinds] == ["prefill", "decode", "mixed"]
        assert "✖ COR001      1  mix-on-occupied-group" in said
        assert re.search(r"✔ clean +[A-Z]{3} \d+", said)
        assert "COL 1" in said.partition("○ not applicable")[2]
        assert "COL001" not in said
        assert said.index("FINDINGS") < said.index("12 STEPS") < said.index("TABLES")


async def test_a_key_shows_the_codes_of_rules_that_found_nothing_or_could_not_judge() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        about = app_of(pilot).query_one("#about", Prose)
        await press(pilot, "2", "S")
        assert app_of(pilot).page == "overview"
        assert {"COR002", "COL001", *RESULT.not_applicable} <= set(about.text.split())

        await press(pilot, "S")
        assert "COR002" not in about.text


@slow
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


@slow
async def test_charts_without_numbers_are_not_shown() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        assert app_of(pilot).query_one("#kv").display
    bare = conflict_trace().steps.drop("kv_blocks_total").collect()
    async with opened(Trace.from_tables({"steps": bare}, Manifest("test")), RESULT) as pilot:
        assert not app_of(pilot).query_one("#kv").display


@slow
async def test_a_profile_is_summed_up_where_there_are_no_batches_to_draw() -> None:
    spans = [kernel("gemm", 0, 30), kernel("ncclAllReduce", 20, 20, "GPU 0 / stream 8")]
    async with opened(trace_of(spans=spans), RESULT) as pilot:
        assert not app_of(pilot).query_one("#charts").display
        said = app_of(pilot).query_one("#summary", Prose).text
        assert "exposed communication  10 ns   25.0%" in said
        assert "TOP KERNELS AND COPIES" in said


@slow
async def test_one_step_has_no_chart_over_time() -> None:
    alone = conflict_trace().steps.head(1).collect()
    async with opened(Trace.from_tables({"steps": alone}, Manifest("test")), RESULT) as pilot:
        assert not app_of(pilot).query_one("#charts").display


@slow
async def test_a_run_is_summed_up_below_its_batches() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        assert app_of(pilot).query_one("#charts").display
        said = app_of(pilot).query_one("#summary", Prose).text
        assert "Add --slo ttft=500ms,tpot=50ms" in said
        assert "LATENCIES" in said
        assert "GROUPS, THE LONGEST HELD FIRST" in said


@slow
async def test_a_small_terminal_has_the_summary_between_what_was_found_and_the_rest() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        assert not app_of(pilot).query_one("#summary").display
        said = app_of(pilot).query_one("#about", Prose).text
        assert said.index("COR001") < said.index("LATENCIES") < said.index("12 STEPS")


async def test_a_page_down_scrolls_the_summary() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "J")
        assert app_of(pilot).query_one("#summary").scroll_offset.y == 3
