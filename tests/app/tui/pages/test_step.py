"""A step in detail: batch, who was left out and why, queue, slots, KV blocks, core groups."""

from __future__ import annotations

from textual.pilot import Pilot

from stepscope.app.debug import Position
from stepscope.app.tui.pages.step import StepPage
from stepscope.app.tui.widgets.prose import Prose
from stepscope.app.tui.widgets.step_bar import StepBar
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import waiting_on_rank_one
from tests.app.tui.stage import (
    NARROW,
    RESULT,
    STEP_NS,
    WIDE,
    app_of,
    conflict_trace,
    opened,
    press,
    screen_text,
    settle,
    state_of,
)
from tests.tiers import slow
from tests.traces import trace_of


def left(pilot: Pilot[None]) -> str:
    return app_of(pilot).query_one("#step-left", Prose).text


def right(pilot: Pilot[None]) -> str:
    return app_of(pilot).query_one("#step-right", Prose).text


def position(pilot: Pilot[None]) -> Position:
    shown = app_of(pilot).opened
    assert shown is not None
    assert shown.session is not None
    return shown.session.position


@slow
async def test_it_tells_the_batch_who_was_left_out_and_why_and_what_the_engine_held() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "colon", "6", "enter")
        await press(pilot, "4")
        assert "step 6 of 12 · 0.500 ms" in screen_text(pilot)
        assert (
            "decode · tokens: 0 prefill + 3 decode = 3 of 1,024 · bucket-4 · took 95.0 µs"
            in screen_text(pilot)
        )
        rows = [line.split()[:3] for line in left(pilot).splitlines() if " D req-" in line]
        assert rows == [["D", f"req-{n}", "1"] for n in (1, 2, 3)]
        said = " ".join(left(pilot).split())
        reason = "passed-over: no free slot, slot needs 1, 0 available, held by req-3"
        assert f"LEFT OUT 1 req-4 {reason}" in said

        state = right(pilot)
        assert "WAITING 1 \nreq-4" in state
        assert "RUNNING 3 \nreq-1  req-2  req-3" in state
        assert "0: req-1  1: req-2  2: req-3" in state
        assert "KV BLOCKS HELD 24 OF 48" in state
        assert "█" * 24 + "·" * 24 in state
        assert "CORES RUNNING 1 OF 6" in state


async def test_it_tells_how_long_a_step_was_on_cpu_and_gpu() -> None:
    step = {"step": 1, "ts_ns": 0, "dur_ns": 308_000_000, "kind": "mixed", "inferred": "tags",
            "cpu_dur_ns": 26_400_000, "gpu_ts_ns": 151_000_000, "gpu_dur_ns": 157_000_000,
            "gpu_busy_ns": 156_000_000}  # fmt: skip

    async with opened(trace_of(steps=[step])) as pilot:
        await press(pilot, "4")

        assert "took 308 ms (CPU 26.4 ms, GPU busy 156 ms)" in screen_text(pilot)


@slow
async def test_steps_go_forward_and_back_by_keyboard_and_mouse() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "4")
        shown = app_of(pilot).opened
        assert shown is not None
        assert shown.session is not None
        assert "event_ns" in vars(shown.session.moments), "found before a key asks for the next"

        await press(pilot, "right_square_bracket", "right_square_bracket")
        assert "step 3 of 12 · 0.200 ms" in screen_text(pilot)
        await press(pilot, "left_square_bracket")
        assert "step 2 of 12 · 0.100 ms" in screen_text(pilot)
        await pilot.click("#step-bar", offset=(1, 0))
        await settle(pilot)
        assert "step 1 of 12 · 0.000 ms" in screen_text(pilot)
        await press(pilot, *["right_square_bracket"] * 8)
        assert "step 9 of 12 · 0.800 ms" in screen_text(pilot)
        await press(pilot, "G")
        assert "step 12 of 12 · 1.100 ms" in screen_text(pilot)


async def test_events_stop_between_steps() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "4", "l")
        assert state_of(pilot).cursor_ns == 2_000, "AIV1 of group 0 starts"
        await press(pilot, "l", "h")
        assert state_of(pilot).cursor_ns == 2_000


@slow
async def test_a_request_is_followed_through_the_steps() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "colon", "7", "enter")
        await press(pilot, "4")
        await press(pilot, "k", "j", "j", "j")
        assert "WHAT WAS DECIDED ABOUT req-4" in left(pilot)
        told = left(pilot).count("passed-over: no free slot")
        assert told == 1 + 4, "left out, and its history"
        assert "WAITING 1 · req-4 is number 1" in right(pilot)
        await press(pilot, "right_square_bracket")
        assert "▌P req-4" in left(pilot), "it is in the batch now"
        assert "KV BLOCKS HELD 32 OF 48" in right(pilot)
        assert "▓" * 8 in right(pilot), "its blocks"
        await press(pilot, "escape")
        assert "WHAT WAS DECIDED" not in left(pilot)


async def test_why_a_request_waits_is_told_as_a_chain_whose_rows_are_gone_to_and_back() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "colon", "7", "enter")
        await press(pilot, "4", "j", "j", "j", "j")
        said = " ".join(right(pilot).split())
        assert "req-4: not recorded: req-3 runs, and its end is not recorded" in said
        assert "1 → step 7 req-4 is passed-over: no free slot: needs 1, free 0" in said
        before = position(pilot)

        await press(pilot, "o")
        assert position(pilot).seq == 57, "the decision"
        await press(pilot, "b")
        assert position(pilot) == before
        y = next(n for n, line in enumerate(right(pilot).splitlines()) if "1 → step 7" in line)
        await pilot.click("#step-right", offset=(5, y))
        await settle(pilot)
        assert position(pilot).seq == 57


async def test_changes_are_stepped_through_one_by_one_where_many_bear_one_time() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "colon", "7", "enter")
        await press(pilot, "4")
        here = position(pilot)
        await press(pilot, "I", "I")
        assert position(pilot).ts_ns == here.ts_ns
        assert position(pilot) < here
        await press(pilot, "i", "i")
        assert position(pilot) == here


@slow
async def test_a_request_is_followed_by_a_click() -> None:
    async with opened(conflict_trace(), RESULT) as pilot:
        await press(pilot, "4")
        y = next(n for n, line in enumerate(left(pilot).splitlines()) if "req-1" in line)
        await pilot.click("#step-left", offset=(5, y))
        await settle(pilot)
        assert "WHAT WAS DECIDED ABOUT req-1" in left(pilot)


@slow
async def test_the_conflict_is_seen_in_the_core_groups_map() -> None:
    async with opened(conflict_trace(), RESULT, WIDE) as pilot:
        await press(pilot, "n", "4")
        groups = [line for line in right(pilot).splitlines() if line.startswith("group 1")]
        assert [part.strip() for part in groups[0].split("  ") if part.strip()] == [
            "group 1", "▓▓ qk_pv", "▓▓ qk_pv", "░░ act + qk_pv",
        ]  # fmt: skip


@slow
async def test_enter_shows_the_same_moment_in_the_timeline() -> None:
    async with opened(conflict_trace(), RESULT, NARROW) as pilot:
        await press(pilot, "4", "G", "enter")
        assert app_of(pilot).page == "timeline"
        assert state_of(pilot).cursor_ns == 11 * STEP_NS


def kv_blocks(**step: int | None) -> Trace:
    """Two requests hold blocks 1 and 3."""
    held = [
        {"ts_ns": 5, "resource": "kv-block", "id": block, "op": "claim", "owner": owner}
        for block, owner in ((1, "a"), (3, "b"))
    ]
    return trace_of(steps=[{"step": 1, "ts_ns": 5, "kind": "decode", **step}], allocations=held)


@slow
async def test_how_many_kv_blocks_there_are_is_said_where_the_trace_does() -> None:
    async with opened(kv_blocks(kv_blocks_total=3)) as pilot:
        await press(pilot, "4")
        assert "KV BLOCKS HELD 2 OF 3" in right(pilot)
        assert right(pilot).split("\n")[2].rstrip() == "█·█"
    async with opened(kv_blocks()) as pilot:
        await press(pilot, "4")
        assert right(pilot).split("\n")[1].rstrip() == "KV BLOCKS HELD 2"


@slow
async def test_a_narrow_pane_cuts_no_number_of_the_batch() -> None:
    row = {"step": 1, "ts_ns": 5, "phase": "prefill", "num_computed": 0, "prompt_len": 192}
    names = {f"req-{n:02}": 128 + n for n in range(3)}
    rows = [{**row, "request": name, "num_tokens": number} for name, number in names.items()]
    steps = [{"step": 1, "ts_ns": 5, "kind": "prefill", "dur_ns": 1000, "inferred": "its kernels"}]
    async with opened(trace_of(steps=steps, batch_rows=rows), size=(60, 24)) as pilot:
        await press(pilot, "4")
        told = [line for line in left(pilot).splitlines() if " P req-" in line]
        assert len(told) == 3
        assert all(line.endswith(("0/192", "…")) for line in told)
        assert all(len(line) <= app_of(pilot).query_one("#step-left", Prose).room for line in told)
        bar = app_of(pilot).query_one(StepBar).about
        assert bar.index("took") < bar.index("inferred")


async def test_a_batch_of_a_token_each_has_no_bar() -> None:
    rows = [{"step": 1, "ts_ns": 5, "phase": "decode", "num_tokens": 1, "request": "a",
             "num_computed": 20}]  # fmt: skip
    async with opened(trace_of(batch_rows=rows)) as pilot:
        await press(pilot, "4")
        assert "1  20 computed" in left(pilot)


async def test_a_pool_of_absurdly_many_blocks_is_drawn_at_once() -> None:
    async with opened(kv_blocks(kv_blocks_total=2**60)) as pilot:
        await press(pilot, "4")
        assert "a cell stands for" in right(pilot)


async def test_who_is_followed_is_found_on_the_rank_that_has_him_and_the_proof_is_gone_to() -> None:
    async with opened(waiting_on_rank_one(), RESULT, WIDE) as pilot:
        await press(pilot, "4", "right_square_bracket", "R")
        while app_of(pilot).query_one(StepPage).request != "late":
            await press(pilot, "j")
        await press(pilot, "R")
        right = app_of(pilot).query_one("#step-right", Prose)
        assert "late of rank 1, as rank 0 has none such" in " ".join(right.text.split())
        await press(pilot, "o")
        session = app_of(pilot).query_one(StepPage).session
        assert session
        assert session.rank == 1
        assert "none such" not in right.text
        await press(pilot, "b")
        assert app_of(pilot).query_one(StepPage).session is not session
