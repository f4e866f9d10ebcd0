"""Every page as it is seen, at the size of a small terminal and of a large one.

After a change that is meant: `pytest tests/app/tui/test_snapshots.py --snapshot-update`, then look
at the pictures in `__snapshots__`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from stepscope.app.tui.app import StepscopeApp
from stepscope.app.tui.pages.step import StepPage
from stepscope.ingest.trace import Trace
from tests.app.both_fronts import stories
from tests.app.tui.stage import NARROW, RESULT, WIDE, conflict_trace, press, settle
from tests.app.tui.test_odd_traces import hostile_findings, hostile_trace
from tests.tiers import sampled, slow

Snap = Callable[..., bool]
STORIES = {
    "the overview": (),
    "the timeline": ("2",),
    "a conflict, jumped to": ("n",),
    "the findings": ("3",),
    "the blame, of the second request": ("5", "j"),
    "a step, a request followed": ("3", "j", "enter", "4", "j", "j", "j"),
}
QUICK = {
    "the overview": WIDE,
    "a conflict, jumped to": NARROW,
    "the findings": NARROW,
    "the blame, of the second request": WIDE,
    "a step, a request followed": WIDE,
}
"""Each page once, at one size."""
LOOKS = [
    pytest.param(story, size, id=f"{story}-{name}", marks=[] if QUICK.get(story) == size else slow)
    for name, size in (("80x24", NARROW), ("160x48", WIDE))
    for story in STORIES
]
ASIDES = {
    "a range, marked": ("2", "j", "l", "m", "l", "l", "m"),
    "a search": ("slash", "q", "k"),
    "the help": ("2", "question_mark"),
}


def arriving(*keys: str) -> Callable[[Pilot[Any]], Any]:
    """Wait for the trace, press keys, wait for what each brings."""

    async def arrive(pilot: Pilot[Any]) -> None:
        await settle(pilot)
        for key in keys:
            await press(pilot, key)

    return arrive


@pytest.mark.parametrize(("story", "size"), LOOKS)
def test_it_looks_as_it_did(snap_compare: Snap, story: str, size: tuple[int, int]) -> None:
    app = StepscopeApp(conflict_trace(), RESULT)
    keys = arriving(*STORIES[story])
    assert snap_compare(app, terminal_size=size, run_before=keys)


@slow
@pytest.mark.parametrize("story", ["a conflict, jumped to", "the blame, of the second request"])
def test_on_a_light_ground_it_looks_as_it_did(snap_compare: Snap, story: str) -> None:
    app = StepscopeApp(conflict_trace(), RESULT)
    keys = arriving("T", *STORIES[story])
    assert snap_compare(app, terminal_size=WIDE, run_before=keys)


@pytest.mark.parametrize("story", sampled(ASIDES, ["the help"]))
def test_asides_look_as_they_did(snap_compare: Snap, story: str) -> None:
    app = StepscopeApp(conflict_trace(), RESULT)
    assert snap_compare(app, terminal_size=NARROW, run_before=arriving(*ASIDES[story]))


@slow
@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "160x48"])
def test_what_the_fix_would_have_changed_looks_as_it_did(
    snap_compare: Snap, size: tuple[int, int], sample_traces: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(sample_traces)
    app = StepscopeApp(Trace.open(stories.BEFORE), RESULT)

    async def arrive(pilot: Pilot[Any]) -> None:
        await arriving("4", "W", "tab", "enter")(pilot)
        what_ifs = app.query_one(StepPage).what_ifs
        assert what_ifs
        assert what_ifs.last
        what_ifs.last.out = Path("kept") / what_ifs.last.out.name  # wherever the tests are run
        await press(pilot, "escape", "W", "pagedown", "pagedown")

    assert snap_compare(app, terminal_size=size, run_before=arrive)


def test_hostile_names_look_harmless(snap_compare: Snap) -> None:
    app = StepscopeApp(hostile_trace(), hostile_findings())
    assert snap_compare(app, terminal_size=NARROW, run_before=arriving("2"))
