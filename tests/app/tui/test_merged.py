"""A recording with a profile merged into it: decisions and GPU work of one step on a screen."""

from __future__ import annotations

from pathlib import Path

from stepscope.app.tui.pages import PAGES
from stepscope.ingest.merging.merge import merge
from tests.app.tui.stage import opened, press, screen_text
from tests.ingest.merging.pairs import profiled, recorded
from tests.tiers import slow


@slow
async def test_every_page_opens_and_kernels_have_lanes_beside_the_recorded_steps(
    tmp_path: Path,
) -> None:
    trace, _ = merge(recorded(tmp_path), profiled(tmp_path))

    async with opened(trace) as pilot:
        for number, _ in enumerate(PAGES, 1):
            await press(pilot, str(number))
            assert pilot.app.is_running
        await press(pilot, "2")
        shown = screen_text(pilot)

    assert "stream 7" in shown
    assert "prefill" in shown
