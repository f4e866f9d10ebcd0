"""One object follows a recording for both fronts, and does nothing unless it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.on_a_part import OF_A_PART
from stepscope.app.live.follower import READ_EVERY_S, Follower
from stepscope.ingest.display import notes
from stepscope.ingest.live.recent_rows import RecentRows
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def record(rec: Recorder, first: int, last: int) -> None:
    for step in range(first, last):
        rec.steps(step=step, ts_ns=1000 * step, kind="decode")
        rec.lifecycle(step=step, ts_ns=1000 * step, request=f"req-{step}", event="arrive")


def test_rows_a_second_are_those_between_two_looks(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        clock = Clock()
        follower = Follower(rec.path, clock=clock)
        record(rec, 0, 10)
        assert follower.refresh().rows_per_s is None
        record(rec, 10, 110)
        clock.now += 2
        assert follower.refresh().rows_per_s == 100


def test_it_does_not_read_more_often_than_it_may(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        clock = Clock()
        follower = Follower(rec.path, clock=clock)
        record(rec, 0, 10)
        follower.refresh()
        record(rec, 10, 20)
        clock.now += READ_EVERY_S / 2
        assert sum(follower.refresh().num_rows.values()) == 20
        clock.now += READ_EVERY_S
        assert sum(follower.refresh().num_rows.values()) == 40


def test_what_is_shown_stays_the_same_until_the_revision_is_another(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        clock = Clock()
        follower = Follower(rec.path, clock=clock)
        record(rec, 0, 10)
        follower.refresh()
        follower.wait_for_check()
        first = follower.look()
        clock.now += 1
        follower.refresh()
        assert follower.look() is first
        record(rec, 10, 20)
        clock.now += 1
        follower.refresh()
        assert follower.look().trace.num_rows("steps") == 20


@pytest.mark.parametrize("is_cut", [False, True])
def test_rules_that_need_all_rows_are_not_applicable_once_some_are_left_out(
    tmp_path: Path, is_cut: bool
) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        follower = Follower(rec.path, rows=RecentRows(most_rows=50 if is_cut else 1000))
        record(rec, 0, 100)
        status = follower.refresh()
        follower.wait_for_check()
        result = follower.look().result

    assert result is not None
    assert status.is_cut == is_cut
    judged = set(result.counts) - OF_A_PART
    assert bool(judged) is not is_cut
    assert ("KVB004" in result.lacking) or not is_cut


def test_rows_that_were_let_go_before_a_check_saw_them_are_told(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        clock = Clock()
        follower = Follower(rec.path, rows=RecentRows(most_rows=50), clock=clock)
        record(rec, 0, 10)
        follower.refresh()
        follower.wait_for_check()
        record(rec, 10, 110)
        clock.now += 10
        follower.refresh()
        follower.wait_for_check()
        status = follower.refresh()

    assert sum(status.num_left_out.values()) > 20
    assert status.num_unchecked == sum(status.num_left_out.values()) - 20


def test_what_is_followed_is_not_said_to_be_recovered(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        record(rec, 0, 10)
        follower = Follower(rec.path)
        follower.refresh()

        assert notes(follower.look().trace.manifest) == [
            "still recording: what was written so far is here"
        ]
        assert "rank 0: recovered 20 rows, discarded 0 bytes" in notes(
            Trace.open(rec.path).manifest
        )
