"""Who waited and ran, and how full the KV cache was: what was told, and nothing that was not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from stepscope.analyzers.summary.load_over_time import FROM_EVENTS, load_over_time
from stepscope.analyzers.views.loads import loads
from tests.analyzers.rows import event
from tests.analyzers.summary.every_trace import each_file, opened
from tests.traces import trace_of


def test_what_is_not_recorded_is_not_there() -> None:
    assert load_over_time(trace_of(steps=[{"step": 1, "ts_ns": 0, "kind": "decode"}])) == {}


def test_the_mean_is_over_time_and_not_over_rows() -> None:
    steps = [
        {"step": step, "ts_ns": at, "kind": "decode", "num_waiting": waiting}
        for step, at, waiting in ((1, 0, 10), (2, 90, 0), (3, 100, 4))
    ]

    (line,) = load_over_time(trace_of(steps=steps))["num_waiting"]

    assert (line.mean, line.most) == (9.0, 10.0)


def test_who_waited_is_counted_from_events_where_no_step_says_it() -> None:
    told = [
        event("a", "arrive", 0), event("b", "arrive", 10), event("a", "admit", 20),
        event("b", "admit", 30), event("a", "finish", 40), event("b", "finish", 50),
    ]  # fmt: skip

    (line,) = load_over_time(trace_of(lifecycle=told))["num_waiting"]

    assert line.source == FROM_EVENTS
    assert dict(zip(line.ts_ns.tolist(), line.values.tolist(), strict=True)) == {
        0: 1, 10: 2, 20: 1, 30: 0, 40: 0, 50: 0
    }  # fmt: skip


def test_who_waited_is_not_counted_where_admissions_are_not_recorded() -> None:
    told = [event("a", "arrive", 0), event("a", "first-token", 20), event("a", "finish", 40)]

    assert load_over_time(trace_of(lifecycle=told)) == {}


@each_file
def test_load_of_every_file_is_that_of_its_rows(name: str) -> None:
    trace = opened(name)
    rows = loads(trace).collect().to_dicts()

    for column, lines in load_over_time(trace).items():
        for line in lines:
            if line.source == FROM_EVENTS:
                assert line.values.min() >= 0
                continue
            own = [
                (row["ts_ns"], row[column])
                for row in rows
                if row["rank"] == line.rank and row[column] is not None
            ]
            assert own == list(zip(line.ts_ns.tolist(), line.values.tolist(), strict=True))
            spent = [value * (b[0] - a[0]) for (a, b) in pairwise(own) for value in a[1:]]
            whole = own[-1][0] - own[0][0]
            assert line.mean == (pytest.approx(sum(spent) / whole) if whole else None)
            assert line.most == max(value for _, value in own)
