"""Two traces side by side as they are seen, at the size of a small terminal and of a large one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.app.tui.paired_pages.both_stage import before_and_after
from tests.app.tui.stage import NARROW, WIDE
from tests.app.tui.test_snapshots import Snap, arriving
from tests.tiers import slow

STORIES = {"what differs": (), "where they diverge": ("D",), "each request in both": ("5",)}
LOOKS = [
    pytest.param(
        story,
        size,
        id=f"{story}-{name}",
        marks=[] if (story, size) == ("where they diverge", NARROW) else slow,
    )
    for name, size in (("80x24", NARROW), ("160x48", WIDE))
    for story in STORIES
]


@pytest.mark.parametrize(("story", "size"), LOOKS)
def test_both_look_as_they_did(
    snap_compare: Snap, story: str, size: tuple[int, int], sample_traces: Path
) -> None:
    app = before_and_after(sample_traces)
    assert snap_compare(app, terminal_size=size, run_before=arriving(*STORIES[story]))
