"""Windows of steps add up to the trace: every quantity has one definition."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.many_runs.step_windows import Windows
from stepscope.analyzers.many_runs.trace_row import SCHEMA, trace_row
from stepscope.analyzers.many_runs.window_rows import SUMMED, window_rows
from stepscope.analyzers.summary.load_over_time import load_over_time
from stepscope.analyzers.summary.slo import slo_of
from stepscope.ingest.errors import ConfigError, TraceError
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import event, life
from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SLO = "ttft=1s,tpot=50ms"
SAMPLES = ("fcfs-preemption-before.trace", "fcfs-preemption-after.trace", "vllm_crowd.trace",
           "mix-admission-before.trace", "perfetto_two_ranks.pftrace")  # fmt: skip
Row = dict[str, Any]


def both(trace: Trace, size: int) -> tuple[Row, list[Row]]:
    """The trace's row, and those of its windows."""
    slo = slo_of(SLO)
    row = trace_row(trace, trace.name, check(trace, ()), (SLO, slo))
    return row, window_rows(trace, row, size, slo)


@slow
@looped("name", SAMPLES)
def test_what_is_counted_in_windows_adds_up_to_the_trace(name: str) -> None:
    trace = Trace.open(ROOT / "sample_traces" / name)

    row, windows = both(trace, 7)

    for column in SUMMED:
        told = [each.get(column) for each in windows]
        if row.get(column) is None:
            assert set(told) == {None}, column
        else:
            assert sum(number or 0 for number in told) == row[column], column
            assert None not in told, column
    for column in ("max_token_gap_ns", "latency_max_ns", "ttft_max_ns", "waiting_max"):
        if row.get(column) is not None:
            known = [each[column] for each in windows if each.get(column) is not None]
            assert max(known) == row[column], column


@slow
@looped("name", SAMPLES[:4])
def test_one_window_of_all_steps_says_what_the_trace_does(name: str) -> None:
    trace = Trace.open(ROOT / "sample_traces" / name)

    row, [window] = both(trace, 10**6)

    of_the_whole_alone = {"findings", "rules_judged", "errors", "warnings", "not_applicable",
                          "goodput", "gpu_busy", "gpu_exposed", "cores_run", "cores_held",
                          "began_ns"}  # fmt: skip
    told = {name: value for name, value in row.items() if value is not None and name in SCHEMA}
    same = {name: window.get(name) for name in told.keys() - of_the_whole_alone}
    assert same == pytest.approx({name: told[name] for name in same})


def test_a_mean_over_time_is_that_of_its_windows_by_their_length() -> None:
    trace = Trace.open(ROOT / "sample_traces" / "fcfs-preemption-before.trace")
    windows = [*Windows.of(trace, 50)]
    edges = [-FAR_NS, *(each.from_ns for each in windows[1:]), FAR_NS]

    for lines in load_over_time(trace).values():
        for line in lines:
            parts = [line.within(a, b) for a, b in pairwise(edges)]
            spans = [(p.mean or 0, int(p.ts_ns[-1] - p.ts_ns[0])) for p in parts if p]
            whole = int(line.ts_ns[-1] - line.ts_ns[0])
            assert sum(length for _, length in spans) == whole
            area = sum(mean * length for mean, length in spans)
            assert area / whole == pytest.approx(line.mean)


def served(request: str, *at: int) -> list[Row]:
    events = ("arrive", "admit", "first-token", "finish")
    return [{"request": request, "event": event, "ts_ns": ts}
            for event, ts in zip(events, at, strict=False)]  # fmt: skip


STEPS = [{"step": step, "ts_ns": step * 10, "dur_ns": 10, "kind": "decode"} for step in range(3, 9)]


def test_who_is_there_and_who_ends_is_told_of_the_window_in_which_that_is() -> None:
    lifecycle = [*served("a", 0, 30, 40, 45), *served("b", 35, 50, 60, 85), *served("c", 62)]

    _, windows = both(trace_of(steps=STEPS, lifecycle=lifecycle), 2)

    told = [(each["window"], each["first_step"], each["last_step"]) for each in windows]
    assert told == [(1, 3, 3), (2, 4, 5), (3, 6, 7), (4, 8, 8)]
    for column, numbers in {
        "arrived": [2, 0, 1, 0], "finished": [0, 1, 0, 1], "requests": [2, 2, 2, 2],
        "open": [2, 1, 2, 1], "steps": [1, 2, 2, 1], "makespan_ns": [10, 20, 20, 10],
    }.items():  # fmt: skip
        assert [each[column] for each in windows] == numbers, column
    assert [each.get("latency_p50_ns") for each in windows] == [None, 45, None, 50]


def test_what_a_trace_does_not_tell_no_window_does() -> None:
    _, windows = both(trace_of(steps=STEPS), 2)

    assert {each.get("finished") for each in windows} == {None}
    assert {each.get("findings") for each in windows} == {None}


def test_a_trace_without_steps_has_no_windows() -> None:
    with pytest.raises(TraceError, match="no steps, and so no windows"):
        both(trace_of(lifecycle=served("a", 0)), 2)


def test_windows_that_nobody_can_look_at_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.analyzers.many_runs.step_windows.MOST", 3)

    with pytest.raises(ConfigError, match="6 windows are more than 3"):
        both(trace_of(steps=STEPS), 1)


def test_tokens_whose_times_are_not_recorded_are_in_no_window() -> None:
    steps = [{"step": number, "kind": "decode", "ts_ns": number, "dur_ns": 1} for number in (1, 2)]
    served = [*life("a", 0, 1, 2), event("b", "arrive", 0)]
    served[2]["num_generated"] = 7

    row, windows = both(trace_of(steps=steps, lifecycle=served), 1)

    assert row["tokens"] == 7
    assert [each.get("tokens") for each in windows] == [None, None]
