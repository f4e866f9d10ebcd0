"""The line at the top says which trace it is, however little room there is for its name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analyzers.findings.finding import Severity
from tests.app.tui.stage import RESULT, conflict_trace, opened, screen_lines
from tests.tiers import slow


@slow
async def test_a_long_name_is_cut_in_its_middle_and_the_place_and_the_findings_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = conflict_trace()
    monkeypatch.setattr(trace, "name", "a-long-name-of-a-run-on-some-day-or-other.trace")
    async with opened(trace, RESULT, size=(80, 24)) as pilot:
        top = screen_lines(pilot)[0]

    assert "stepscope  a-long" in top
    assert "-or-other  step 1 of" in top
    assert "✖ 1" in top


@slow
async def test_a_name_for_which_there_is_room_is_whole() -> None:
    async with opened(conflict_trace(), RESULT, size=(80, 24)) as pilot:
        assert "conflict.trace" in screen_lines(pilot)[0]


@slow
async def test_what_was_found_in_a_recording_is_counted_where_no_rule_could_judge_what_ran() -> (
    None
):
    notes = tuple(each for each in RESULT.findings if each.severity == Severity.INFO)
    lacking = {"COR001": ("tasks",)}
    result = replace(RESULT, findings=notes, counts={"TRC003": 1}, lacking=lacking)
    async with opened(conflict_trace(), result, size=(80, 24)) as pilot:
        top = screen_lines(pilot)[0]

    assert "no rule could judge" in top
    assert "● 1" in top
    assert "✖" not in top, "nothing looked for errors, so that there are none is not said"
