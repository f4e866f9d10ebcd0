"""Flags of two traces side by side: each on its own lane, at its time as that lies on A's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stepscope.app.kept.flags import Flag, Flags
from stepscope.app.paired.flags_of_both import FlagsOfBoth, side_of
from stepscope.app.paired.pair import Pair
from stepscope.app.paired.standing import navigator
from stepscope.app.timeline.flags.flag_at import lane_key
from stepscope.app.timeline.flags.flag_walk import next_flag
from stepscope.app.web.panes.flags import flags_told
from stepscope.app.web.resolve import resolve
from stepscope.app.web.side_by_side.pair_source import PairSource
from tests.app.paired.pairs import pair
from tests.tiers import slow


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pair:
    monkeypatch.setenv("STEPSCOPE_STATE", str(tmp_path))
    return replace(pair("fcfs"))


def put(both: Pair, side: int, name: str, *, step: int, lane: int | None = None) -> int:
    """Put a flag where a step of a side was formed, and give that time of its own clock."""
    own = both.sides[side]
    ts_ns = int(own.composition.formed_ns[own.composition.step.tolist().index(step)])
    key = None if lane is None else lane_key(own.timeline.lanes[lane])
    Flags(own.trace.path).add(name, Flag(ts_ns, f"note of {name}", key))
    return ts_ns


def test_a_flag_of_b_stands_in_its_own_lane_where_its_step_lies_on_a(both: Pair) -> None:
    at_a, at_b = (
        put(both, side, "storm", step=70, lane=both.sides[side].timeline.lanes[5].id)
        for side in (0, 1)
    )
    assert at_a != at_b
    shown = both.flags(both.alignment("step")).now

    timeline = both.timeline(both.alignment("step"))
    assert [(each.name, side_of(each)) for each in shown] == [("A:storm", 0), ("B:storm", 1)]
    assert [each.ts_ns for each in shown] == [at_a, at_a]
    assert [timeline.joined.whose[each.lane or 0] for each in shown] == [(0, 5), (1, 5)]
    by_time = both.flags(both.alignment("time")).now
    assert {each.ts_ns - at_a for each in by_time if side_of(each) == 1} != {0}


@slow
def test_exchanged_they_are_called_as_the_other(both: Pair) -> None:
    put(both, 0, "ours", step=3)

    swapped = both.swapped()
    assert [each.name for each in both.flags(both.alignment("step")).now] == ["A:ours"]
    assert [each.name for each in swapped.flags(swapped.alignment("step")).now] == ["B:ours"]


def test_one_goes_from_flag_to_flag_of_either(both: Pair) -> None:
    put(both, 0, "first", step=5)
    put(both, 1, "second", step=9)
    put(both, 0, "third", step=30)
    alignment = both.alignment("step")
    view = navigator(both, alignment)
    view.flags = both.flags(alignment).now

    visited: list[str] = []
    while next_flag(view, 1):
        visited += [each.name for each in view.selection.flags]
    assert visited == ["A:first", "B:second", "A:third"]


def test_what_somebody_puts_meanwhile_is_found_and_counted(both: Pair) -> None:
    flags: FlagsOfBoth = both.flags(both.alignment("time"))
    assert not flags.now
    before = flags.version
    put(both, 1, "late", step=4)

    assert [each.name for each in flags.now] == ["B:late"]
    assert flags.version == before + 1
    assert flags.now is flags.now


def test_flags_that_cannot_be_read_are_told_and_the_other_traces_are_shown(both: Pair) -> None:
    put(both, 0, "ours", step=4)
    put(both, 1, "theirs", step=4)
    file = Flags(both.traces[1].path).file
    assert file
    file.write_text("{")
    flags = both.flags(both.alignment("time"))

    assert [each.name for each in flags.now] == ["A:ours"]
    assert "flags cannot be read" in flags.failed


def test_the_page_has_them_goes_to_them_and_puts_none(both: Pair) -> None:
    put(both, 0, "first", step=5, lane=2)
    put(both, 1, "second", step=9, lane=2)
    loaded = PairSource(both).now

    resolved = resolve(loaded, "?go=flag-B:second")
    told = flags_told(loaded, resolved.view, resolved.navigator)
    assert [each[0] for each in told["flags"]] == ["A:first", "B:second"]
    assert told["flag"] is None
    assert resolved.cursor == (told["flags"][1][3], told["flags"][1][2])
    assert resolve(loaded, "?go=next-flag").cursor == (told["flags"][0][3], told["flags"][0][2])
