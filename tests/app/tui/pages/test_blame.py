"""The blame page: whose time went where, and from there to the timeline."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import ContentSwitcher

from stepscope.analyzers.latency.blame import blame
from stepscope.app.present.blocks import Paragraph
from stepscope.app.tui.pages import page as every_page
from stepscope.app.tui.pages.blame import BlamePage
from stepscope.app.tui.pages.blame_rows import total_blocks
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.units import duration
from stepscope.ingest.errors import TraceError
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import (
    NARROW,
    RESULT,
    USUAL,
    WIDE,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    state_of,
    text_of,
)
from tests.app.tui.test_odd_traces import hostile_trace
from tests.conftest import ROOT
from tests.ingest.log_files import SGLANG, open_log
from tests.tiers import sampled, slow
from tests.traces import trace_of


@slow
async def test_every_request_has_a_row_the_longest_first_and_s_sorts_by_the_next_order() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "5")
        page = pilot.app.query_one(BlamePage)

        table = text_of(page.table).splitlines()[1:]
        worst = blame(conflict_trace()).requests.sort("latency_ns", descending=True)
        shown = [line.split()[0] for line in table if line.strip()]
        assert sorted(shown) == ["req-1", "req-2", "req-3", "req-4"]
        assert table[0].split()[0] == worst["request"][0]
        assert duration(worst["latency_ns"][0]) in table[0]

        orders = [page.order.name]
        for _ in range(3):
            await press(pilot, "s")
            orders.append(page.order.name)
            assert f"by {page.order.name}" in screen_text(pilot)
        assert orders == ["latency", "arrival", "time to first token", "latency"]


async def test_the_row_under_the_cursor_is_told_and_enter_or_a_second_click_shows_its_request() -> (
    None
):
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "5", "s")  # by arrival
        words = pilot.app.query_one("#blame-about", Prose)
        assert words.text.startswith("req-1 ")
        await press(pilot, "G")
        assert words.text.startswith("req-4 ")
        assert "no free slot" in " ".join(words.text.split())

        row = pilot.app.query_one(BlamePage)._row()
        assert row is not None
        await press(pilot, "enter")
        assert pilot.app.query_one(ContentSwitcher).current == "request"
        await press(pilot, "enter")
        state = state_of(pilot)
        assert pilot.app.query_one(ContentSwitcher).current == "timeline"
        assert state.cursor_ns == row["arrive_ns"]
        assert state.lane is not None
        assert state.timeline.lanes[state.lane].label == "req-4"

        await press(pilot, "5")
        await pilot.click("#blamed", offset=(4, 2))
        await pilot.click("#blamed", offset=(4, 2))
        await settle(pilot)
        assert pilot.app.query_one(ContentSwitcher).current == "request"


def test_lengths_of_steps_that_a_log_does_not_tell_are_called_inferred(tmp_path: Path) -> None:
    shown = list(total_blocks(blame(open_log(tmp_path, SGLANG))))

    assert any(
        isinstance(each, Paragraph) and each.text.startswith("how long 1 step took is inferred: ")
        for each in shown
    )


async def test_a_profile_without_requests_is_blamed_as_a_whole(sample_traces: Path) -> None:
    trace = Trace.open(sample_traces / "torch_profiler_cpu.json.gz")
    async with opened(trace, RESULT) as pilot:
        await press(pilot, "5", "enter", "5")

        told = screen_text(pilot)
        assert "whole run" in told
        assert told.count("WHERE IT WENT") == 1
        assert told.count(" decode ") == 2, "in the legend and in one table"
        assert "NOTES" in told
        assert "ALL REQUESTS" not in told


async def test_a_hostile_name_is_shown_as_text() -> None:
    async with opened(hostile_trace(), RESULT) as pilot:
        await press(pilot, "5", "j")

        assert "\x1b" not in screen_text(pilot)


async def test_what_cannot_be_split_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Trace) -> None:
        raise TraceError("the table is damaged", where="steps")

    monkeypatch.setattr(every_page, "blame", fail)
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "5", "j", "enter", "s")

        assert "the table is damaged" in screen_text(pilot)


@pytest.mark.parametrize("size", sampled([NARROW, USUAL, WIDE], [NARROW]), ids=str)
async def test_the_legend_has_room_for_every_sign_of_the_bars(size: tuple[int, int]) -> None:
    trace = Trace.open(ROOT / "sample_traces" / "vllm_crowd.trace")
    async with opened(trace, RESULT, size) as pilot:
        await press(pilot, "5")

        told = text_of(pilot.app.query_one("#blame-legend"))
        groups = ("front-end", "queue", "preempted", "recompute", "prefill", "decode", "delivery")
        assert all(group in told for group in (*groups, "idle"))


@pytest.mark.parametrize(
    "name", sampled(["a list of arrivals", "a trace of cores"], ["a list of arrivals"])
)
async def test_where_nothing_can_be_blamed_the_notes_say_why(name: str) -> None:
    arrivals = [{"event": "arrive", "request": f"r{at}", "ts_ns": at} for at in range(3)]
    cores = [
        {
            "core": 0,
            "core_kind": "AIC",
            "ts_ns": 0,
            "end_ns": 9,
            "group": 0,
            "shape": "AIC",
            "task": 0,
            "block": 0,
        }
    ]
    trace = trace_of(lifecycle=arrivals) if "arrivals" in name else trace_of(core_spans=cores)
    async with opened(trace, RESULT) as pilot:
        await press(pilot, "5")

        said = " ".join(screen_text(pilot).split())
        assert "the notes say why" in said
        for note in blame(trace).notes:
            assert " ".join(note.split()[:6]) in said
