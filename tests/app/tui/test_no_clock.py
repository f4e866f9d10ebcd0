"""The terminal over a log without a clock: a ruler of positions, and no duration of them."""

from __future__ import annotations

from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.app.units import of_one_trace
from stepscope.ingest.trace import Trace
from tests.app.test_no_clock import SLOTS, durations
from tests.app.tui.stage import WIDE, opened, press, screen_text


async def test_no_page_shows_a_duration_from_the_order_of_lines(tmp_path: Path) -> None:
    (file := tmp_path / "slots.log").write_text(SLOTS)
    trace = Trace.open(file)

    with of_one_trace(has_times=False):
        async with opened(trace, check(trace), size=WIDE) as pilot:
            for page in "12345678":
                await press(pilot, page)
                text = screen_text(pilot)
                assert durations(text) == set(), page
            await press(pilot, "2", "j", "j", "l")
            assert "position" in screen_text(pilot)
            assert durations(screen_text(pilot)) == set()
