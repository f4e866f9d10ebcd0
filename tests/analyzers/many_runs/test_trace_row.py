"""A trace in one row: means of several ranks."""

from __future__ import annotations

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.many_runs.trace_row import trace_row
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def of_ranks(*times: tuple[int, int, int]) -> Trace:
    """Ranks whose steps run a number of requests; `times` are first and last step, and how many."""
    steps = [
        {"rank": rank, "step": at, "kind": "decode", "ts_ns": at, "dur_ns": 1, "num_running": many}
        for rank, (first, last, many) in enumerate(times)
        for at in range(first, last + 1)
    ]
    return trace_of(steps=steps)


def mean_running(trace: Trace) -> float | None:
    return trace_row(trace, trace.name, check(trace, ())).get("running_mean")


def test_ranks_are_added_over_the_time_that_all_of_them_recorded() -> None:
    assert mean_running(of_ranks((0, 100, 4), (0, 100, 2))) == 6
    assert mean_running(of_ranks((0, 100, 4), (50, 60, 2))) == 6


def test_ranks_that_recorded_at_different_times_are_not_added() -> None:
    assert mean_running(of_ranks((0, 10, 4), (20, 30, 2))) is None
    assert mean_running(of_ranks((0, 10, 4))) == pytest.approx(4)
