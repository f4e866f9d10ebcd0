"""The pane of details asks for what is selected, and only when that is something else."""

from __future__ import annotations

import pytest

from stepscope.app.present.blocks import Block
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.widgets.details_pane import Details
from stepscope.ingest.trace import Trace
from tests.app.tui.stage import RESULT, WIDE, conflict_trace, press, screen_text, settle
from tests.tiers import slow


@slow
async def test_a_pan_or_a_zoom_looks_nothing_up_and_a_walk_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Selection] = []
    blocks_of = Details.blocks_of

    def counted(
        self: Details, selection: Selection, timeline: Timeline, trace: Trace
    ) -> list[Block]:
        asked.append(selection)
        return blocks_of(self, selection, timeline, trace)

    monkeypatch.setattr(Details, "blocks_of", counted)
    app = StepscopeApp(conflict_trace(), RESULT, page="timeline")
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        await press(pilot, "n")
        told, num_asked = screen_text(pilot), len(asked)

        await press(pilot, "w", "d", "a", "s")

        assert len(asked) == num_asked
        assert screen_text(pilot) == told

        await press(pilot, "j")

        assert len(asked) == num_asked + 1
        assert screen_text(pilot) != told
