"""The story "compare before and after": two traces under one cursor, and what differs in tables."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from stepscope.analyzers.diff.compare import Difference, diff
from stepscope.app.kept.flags import Flag, Flags
from stepscope.app.paired import pair
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.tui.both_app import BothApp
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.tui.paired_pages.both_stage import before_and_after, both_of, compared, words
from tests.app.tui.stage import NARROW, WIDE, press, screen_lines, screen_text
from tests.app.tui.test_odd_traces import hostile_trace
from tests.tiers import slow


def notices(pilot: Pilot[None]) -> list[str]:
    return [str(each.message) for each in pilot.app._notifications]


@slow
async def test_compare_before_and_after(sample_traces: Path) -> None:
    async with compared(before_and_after(sample_traces), WIDE) as pilot:
        told = words(pilot)
        assert stories.COMPARED_AT in told
        for each in (*stories.COMPARED_TOTALS, *stories.COMPARED_RULES, *stories.COMPARED_SUMMED):
            assert each in told

        await press(pilot, "D")
        assert both_of(pilot).page == "timeline"
        shown = screen_text(pilot)
        assert stories.COMPARED_AS in shown
        assert stories.COMPARED_AT in shown
        assert shown.count("≠") >= 4  # in both maps and on both rulers
        standing = both_of(pilot).standing
        assert standing
        assert standing.pair.diverged_ns == (standing.view.cursor_ns, 1_635_941_010)
        assert all(each in shown for each in ("A req-00", "B req-00"))

        await press(pilot, "slash", *stories.LANE_OF_BOTH, "enter", "t")
        assert stories.BY_REQUEST in screen_text(pilot)

        await press(pilot, "3")
        assert stories.ONLY_BEFORE in screen_text(pilot)
        await press(pilot, "5")
        assert stories.COMPARED_REQUEST in words(pilot)
        await press(pilot, "4")
        assert "B − A" in words(pilot)


@slow
async def test_both_move_and_are_exchanged_as_one(sample_traces: Path) -> None:
    async with compared(before_and_after(sample_traces), NARROW) as pilot:
        await press(pilot, "2", "D", "t")
        assert stories.BY_TIME in screen_text(pilot)
        view = both_of(pilot).view
        assert view
        timeline = view.timeline
        assert isinstance(timeline, JoinedTimeline)
        for key in ("w", "a", "s", "d", "j", "l", "h", "]", "n", "g", "G", "0"):
            await press(pilot, key)
            t0, t1 = view.viewport.t0, view.viewport.t1
            window = timeline.own_window(1, t0, t1)
            assert window[1] - window[0] == t1 - t0
        await press(pilot, "X")
        standing = both_of(pilot).standing
        assert standing
        assert standing.pair.traces[0].name == stories.AFTER
        await press(pilot, "3")
        assert "only B: " in screen_text(pilot)


@slow
async def test_exchanging_compares_and_sums_up_beside_the_screen(
    sample_traces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared_in = []

    def noted(a: Trace, b: Trace) -> Difference:
        compared_in.append(threading.current_thread())
        return diff(a, b)

    async with compared(before_and_after(sample_traces), NARROW) as pilot:
        monkeypatch.setattr(pair, "diff", noted)
        await press(pilot, "X", "X")
        standing = both_of(pilot).standing
        assert standing
        first = standing.pair.traces[0].name
        await press(pilot, "X")
        assert standing.pair.traces[0].name != first

    assert compared_in
    assert threading.main_thread() not in compared_in


@slow
async def test_the_other_of_a_lane_is_told_beside_what_is_selected(sample_traces: Path) -> None:
    async with compared(before_and_after(sample_traces), WIDE) as pilot:
        await press(pilot, "2", "j", "j", "l", "l", "l")
        shown = screen_text(pilot)
        assert "IN B, AT THE SAME PLACE" in shown
        await press(pilot, "m", "l", "m")
        assert "a marked range of both" in screen_text(pilot)


@slow
async def test_what_is_of_one_trace_alone_says_so(sample_traces: Path) -> None:
    async with compared(before_and_after(sample_traces), WIDE) as pilot:
        for number, key in enumerate(("F", "H", "L"), 1):
            await press(pilot, key)
            assert " ".join(notices(pilot)).count("open that one alone") == number, key


async def test_hostile_names_are_harmless_in_both() -> None:
    trace: Trace = hostile_trace()
    async with compared(BothApp((trace, trace)), WIDE) as pilot:
        for key in ("2", "D", "j", "l", "n", "t", "X", "3", "4", "5", "1"):
            await press(pilot, key)
            assert "\x1b" not in screen_text(pilot)


@slow
async def test_flags_of_either_stand_on_its_own_ruler_and_are_gone_to(
    sample_traces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    for name, flag, at_ns in (
        (stories.BEFORE, "ours", 9_000_000_000), (stories.AFTER, "theirs", 5_000_000_000),
    ):  # fmt: skip
        trace = Trace.open(sample_traces / name)
        Flags(trace.path).add(flag, Flag((trace.start_ns() or 0) + at_ns, "look here"))
    async with compared(before_and_after(sample_traces), WIDE) as pilot:
        await press(pilot, "2", "t")
        lines = screen_lines(pilot)
        rulers = [next(line for line in lines if f"time {side} " in line) for side in "AB"]
        assert "⚑A:ours" in rulers[0]
        assert "⚑B:theirs" in rulers[1]
        assert "⚑B:theirs" not in rulers[0]

        await press(pilot, "u")
        assert "look here" in screen_text(pilot)
        await press(pilot, "Y")
        assert "@A:ours" in screen_text(pilot)
        await press(pilot, "d", "escape", "y")
        assert any("one of the two is open alone" in said for said in notices(pilot))
        assert len(Flags(Trace.open(sample_traces / stories.BEFORE).path).all) == 1
