"""A finding that came stays, with the step at which it came, or it is told what became of it."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.app.live.found_so_far import FoundSoFar, Standing

LATE = Finding(
    "STV001", "late", Severity.WARNING, "a is late", "serve it", 0, 3, 30, request="a", count=1
)
OTHER = replace(LATE, request="b", ts_ns=50, step=5)
JUDGED = frozenset({"STV001"})


def test_a_finding_keeps_the_step_at_which_it_came_and_takes_its_latest_numbers() -> None:
    found = FoundSoFar()
    assert found.take([LATE], 3, None, JUDGED)
    grown = replace(LATE, message="a is very late", count=2)
    assert found.take([grown, OTHER], 9, None, JUDGED)

    assert [(each.finding, each.at_step) for each in found.came] == [(grown, 3), (OTHER, 9)]
    assert not found.take([grown, OTHER], 12, None, JUDGED)


def test_one_whose_place_moves_is_the_same() -> None:
    found = FoundSoFar()
    found.take([LATE], 3, None, JUDGED)
    worst = replace(LATE, ts_ns=40, step=4)
    found.take([worst], 4, None, JUDGED)

    assert [each.finding for each in found.came] == [worst]
    assert found.came[0].at_step == 3


def test_one_whose_rows_are_left_out_stands() -> None:
    found = FoundSoFar()
    found.take([LATE], 3, None, JUDGED)
    found.take([], 9, 31, JUDGED)

    assert found.findings == (LATE,)
    assert found.came[0].standing is Standing.OLDER


def test_one_whose_rule_cannot_judge_any_more_stands() -> None:
    found = FoundSoFar()
    found.take([LATE], 3, None, JUDGED)
    found.take([], 9, 5, frozenset())

    assert found.came[0].standing is Standing.OLDER


def test_one_that_is_no_longer_found_in_its_own_rows_goes_and_is_told() -> None:
    found = FoundSoFar()
    found.take([LATE], 3, None, JUDGED)
    found.take([], 9, 5, JUDGED)

    assert found.findings == ()
    assert [each.standing for each in found.came] == [Standing.WITHDRAWN]


def test_more_than_there_is_room_for_are_counted() -> None:
    found = FoundSoFar(most=1)
    found.take([LATE, OTHER], 3, None, JUDGED)

    assert found.findings == (LATE,)
    assert found.num_untold == 1
