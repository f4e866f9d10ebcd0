"""What became of each request, as rules look at it."""

from __future__ import annotations

from stepscope.analyzers.views.requests import has_decisions, last_moment
from stepscope.ingest.times import FAR_NS
from tests.analyzers.rows import event
from tests.analyzers.serving_rows import decode
from tests.traces import trace_of


def test_a_step_that_lasts_longer_than_there_are_times_ends_after_everything() -> None:
    steps = [decode(1, 1, ts_ns=2**62, dur_ns=2**62)]
    trace = trace_of(steps=steps, lifecycle=[event("a", "arrive", 5)])

    assert last_moment(trace).collect()["trace_end_ns"].item() == FAR_NS


def test_a_step_that_lasts_less_than_nothing_ends_when_it_began() -> None:
    trace = trace_of(steps=[decode(1, 1, ts_ns=50, dur_ns=-40)])

    assert last_moment(trace).collect()["trace_end_ns"].item() == 50


def test_who_tells_only_whom_it_lets_in_has_not_told_why_anybody_was_left_out() -> None:
    let_in = {"ts_ns": 5, "subject_kind": "request", "subject": "a", "verdict": "admitted"}

    assert not has_decisions(trace_of(decisions=[let_in]))
    assert has_decisions(trace_of(decisions=[let_in, {**let_in, "verdict": "deferred"}]))
