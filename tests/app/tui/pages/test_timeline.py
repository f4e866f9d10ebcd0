"""The timeline under keys and mouse: what is looked at changes, and the screen shows it."""

from __future__ import annotations

import re

from textual import events
from textual.pilot import Pilot
from textual.widget import Widget

from stepscope.app.present.blocks import Runs
from stepscope.app.present.details import range_blocks
from stepscope.app.timeline import Timeline
from stepscope.app.tui.plot.lane_list import Lanes
from stepscope.app.tui.plot.minimap import Minimap
from stepscope.app.tui.plot.time_axis import TimeAxis
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.app.tui.widgets.tabs import Tabs
from tests.app.tui.stage import (
    NARROW,
    RESULT,
    STEP_NS,
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
from tests.tiers import slow
from tests.traces import trace_of


def lanes_of(pilot: Pilot[None]) -> Lanes:
    return app_of(pilot).query_one(Lanes)


async def drag(
    pilot: Pilot[None], widget: Widget, start: tuple[int, int], end: tuple[int, int],
    *, shift: bool = False,
) -> None:  # fmt: skip
    """Press the button at a cell of a widget, move to another, let go."""
    name = f"#{widget.id}"
    await pilot.mouse_down(name, offset=start, shift=shift)
    await pilot._post_mouse_events(  # the pilot's hover moves without a button
        [events.MouseMove], widget=name, offset=end, button=1, shift=shift
    )
    await pilot.mouse_up(name, offset=end, shift=shift)
    await settle(pilot)


@slow
async def test_keys_zoom_pan_go_to_both_ends_and_step_through_the_engine_s_steps() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2")
        ruler = text_of(app_of(pilot).query_one(TimeAxis))
        assert ruler.index("▼") == lanes_of(pilot).plot.left
        assert app_of(pilot).query_one(Minimap).gutter_width == lanes_of(pilot).plot.left

        whole = state_of(pilot).viewport
        await press(pilot, "w", "w")
        assert state_of(pilot).viewport.span_ns < whole.span_ns / 2
        await press(pilot, "s", "s", "s")
        assert state_of(pilot).viewport == whole

        await press(pilot, "w", "w", "w", "d", "d")
        there = state_of(pilot).viewport
        await press(pilot, "d", "a")
        assert state_of(pilot).viewport == there
        assert there.t0 > 0

        await press(pilot, "G")
        assert "step 12 of 12" in screen_lines(pilot)[0]
        await press(pilot, "g", "g")
        assert state_of(pilot).cursor_ns == 0
        await press(pilot, *["right_square_bracket"] * 5)
        assert state_of(pilot).cursor_ns == 5 * STEP_NS
        assert "step 6 of 12" in screen_lines(pilot)[0]
        await press(pilot, "left_square_bracket")
        assert "step 5 of 12" in screen_lines(pilot)[0]


@slow
async def test_l_walks_along_the_lane_and_the_details_name_the_span() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2", "j", "l")
        span = state_of(pilot).span
        assert span is not None
        assert span.label == "qk_pv"
        said = app_of(pilot).query_one("#details", Details).text
        assert "MIX on group 0 · AIC" in said
        assert "core_spans row" in said.lower()


@slow
async def test_a_marked_range_tells_how_long_and_how_busy_it_is() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2", "j", "m", "l", "m")
        said = app_of(pilot).query_one("#details", Details).text
        assert said.startswith("80.0 µs marked")
        assert " 87.5%  group 0 · AIV1, 2 spans" in said
        await press(pilot, "escape")
        assert state_of(pilot).mark is None


def test_who_holds_a_core_is_not_counted_as_busy() -> None:
    """Three blocks' worth of waiting beside a quarter of work is 25%, and not all of it."""
    span = {"task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0, "core_kind": "AIC"}
    timeline = Timeline.of(
        trace_of(core_spans=[{**span, "dispatch_ns": 0, "ts_ns": 300, "end_ns": 400}])
    )

    said = [
        "".join(text for text, _ in block.parts)
        for block in range_blocks(0, 400, range(len(timeline.lanes)), timeline)
        if isinstance(block, Runs)
    ]

    assert said[0] == " 25.0%  group 0 · AIC, 1 span, held 75.0%"


@slow
async def test_enter_hides_the_details_and_shows_them_again_and_a_pinned_lane_is_on_top() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "2")
        details = app_of(pilot).query_one("#details", Details)
        width = lanes_of(pilot).plot.width
        assert "Nothing selected" in screen_text(pilot), "there is room for them"
        await press(pilot, "enter")
        assert "Nothing selected" not in screen_text(pilot)
        assert lanes_of(pilot).plot.width > width
        await press(pilot, "enter")
        assert details.is_on_screen

        await press(pilot, *["j"] * 7, "p")
        first = text_of(lanes_of(pilot)).splitlines()[:2]
        lane = state_of(pilot).lane
        assert lane is not None
        assert first[0].startswith(" ★ pinned")
        assert state_of(pilot).timeline.lanes[lane].label in first[1]


async def test_on_a_narrow_terminal_details_and_findings_share_a_place() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await press(pilot, "2")
        assert "findings 3" in screen_text(pilot)
        await press(pilot, "enter")
        assert "findings 3" not in screen_text(pilot)
        assert "Nothing selected" in screen_text(pilot)


def cores_of(pilot: Pilot[None]) -> str:
    """The lanes of the core groups."""
    lines = text_of(lanes_of(pilot)).splitlines()
    return "\n".join(line for line in lines if re.search(r"AI[CV]\d? +\S", line))


async def test_the_mouse_hides_states_selects_zooms_drags_and_marks() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "2")
        assert "▓" in cores_of(pilot)
        x = text_of(app_of(pilot).query_one(Tabs)).index("MIX")
        await pilot.click("#tabs", offset=(x, 0))
        await settle(pilot)
        assert "▓" not in cores_of(pilot)
        assert "✕✕ MIX" in text_of(app_of(pilot).query_one(Tabs))
        await pilot.click("#tabs", offset=(x, 0))
        await settle(pilot)
        assert "▓" in cores_of(pilot)

        lines = text_of(lanes_of(pilot)).splitlines()
        y = next(n for n, line in enumerate(lines) if line.startswith("  req-2"))
        await pilot.click("#lanes", offset=(lines[y].index("P 256"), y))
        await settle(pilot)
        span = state_of(pilot).span
        assert span is not None
        assert (span.label, span.ref[0]) == ("P 256", "batch_rows")
        await press(pilot, "escape")
        assert state_of(pilot).span is None

        at = lanes_of(pilot).plot.time(80)
        for _ in range(4):
            await pilot._post_mouse_events(
                [events.MouseScrollUp], widget="#lanes", offset=(80, 3), button=0
            )
        await settle(pilot)
        assert state_of(pilot).viewport.span_ns < 12 * STEP_NS / 2
        assert abs(lanes_of(pilot).plot.time(80) - at) < STEP_NS / 10

        before = lanes_of(pilot).plot.time(90)
        await drag(pilot, lanes_of(pilot), (90, 3), (50, 3))
        assert abs(lanes_of(pilot).plot.time(50) - before) < STEP_NS / 50
        assert state_of(pilot).span is None, "a drag selects nothing"

        await press(pilot, "0")
        plot = lanes_of(pilot).plot
        await drag(pilot, lanes_of(pilot), (40, 3), (60, 3), shift=True)
        assert state_of(pilot).mark == (plot.time(40), plot.time(60))
        await drag(pilot, app_of(pilot).query_one(TimeAxis), (70, 0), (50, 0))
        assert state_of(pilot).mark == (plot.time(50), plot.time(70))


@slow
async def test_tabs_the_footer_headers_and_the_map_can_be_clicked() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        tabs = text_of(app_of(pilot).query_one(Tabs))
        for page in ("findings", "step", "overview", "timeline"):
            await pilot.click("#tabs", offset=(tabs.index(page.title()), 0))
            await settle(pilot)
            assert app_of(pilot).page == page

        footer = screen_lines(pilot)[-1]
        await pilot.click("#footer", offset=(footer.index("zoom"), 0))
        await settle(pilot)
        assert state_of(pilot).viewport.span_ns < 12 * STEP_NS * 0.9

        await pilot.click("#lanes", offset=(5, 2))
        await settle(pilot)
        lines = text_of(lanes_of(pilot)).splitlines()
        assert "▸ core groups" in lines[2]
        assert "6 lanes collapsed" in lines[2]
        assert "▾ slots" in lines[3]

        await press(pilot, "w", "w")
        minimap = app_of(pilot).query_one(Minimap)
        await pilot.click("#minimap", offset=(minimap.size.width - 1, 0))
        await settle(pilot)
        assert state_of(pilot).viewport.t1 == state_of(pilot).timeline.bounds[1]


async def test_a_resize_keeps_what_is_looked_at() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "n")
        before = state_of(pilot).viewport
        for size in (NARROW, (61, 13), WIDE):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert state_of(pilot).viewport == before
            assert all(len(line) <= size[0] for line in screen_lines(pilot))
            assert any(line.startswith("▌") for line in screen_lines(pilot))


@slow
async def test_q_quits() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert app_of(pilot)._exit
