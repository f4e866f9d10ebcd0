"""BAT004: a request twice in a step, or a victim in the batch it was evicted from."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.bat.bat004_double_scheduled import DoubleScheduled
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event
from tests.analyzers.serving_rows import row
from tests.looped import looped
from tests.traces import trace_of

RUNS = [event("a", "arrive", 0, step=1), event("a", "admit", 10, step=1)]


def double(*rows: Row, lifecycle: list[Row] | None = None) -> list[Finding]:
    return DoubleScheduled().check(trace_of(batch_rows=rows, lifecycle=RUNS + (lifecycle or [])))


def test_a_request_that_has_two_rows_in_a_step_is_found() -> None:
    rows = [row(1, "a"), row(2, "a"), row(2, "a"), row(2, "b"), row(3, "b"), row(3, "b")]

    (found,) = double(*rows)

    assert found.message == "2 rows too many of requests that have one: first a in step 2"
    assert (found.request, found.ts_ns, found.end_ns, found.count) == ("a", 20, 30, 2)


def test_a_victim_whose_row_stays_in_the_batch_is_found() -> None:
    (found,) = double(row(1, "a"), row(2, "a"), lifecycle=[
        event("a", "preempt", 20, step=2, by_request="b")
    ])  # fmt: skip

    assert found.message == (
        "1 row of evicted requests is in a batch: first a in step 2, preempted for b"
    )


def test_a_victim_that_arrived_outside_of_steps_is_found() -> None:
    told = [event("v", "arrive", 0), event("v", "admit", 10, step=1)]
    lost = [event("v", "preempt", 20, step=2)]

    (found,) = double(row(1, "v"), row(2, "v"), lifecycle=told + lost)

    assert (found.request, found.step) == ("v", 2)


@looped("arrival", [[event("v", "arrive", 0)], [event("v", "arrive", 10, step=1)]])
def test_a_victim_of_the_step_that_let_it_in_is_found_wherever_it_came_from(
    arrival: list[Row],
) -> None:
    told = [event("v", "admit", 10, step=1), event("v", "preempt", 11, step=1)]
    again = [event("v", "resume", 20, step=2), event("v", "preempt", 20, step=2)]

    found = double(row(2, "v"), lifecycle=arrival + told + again)

    assert [each.step for each in found] == [2]


def test_a_victim_that_was_in_the_trace_before_it_began_is_found() -> None:
    told = [event("v", "admit", 10, step=1), event("v", "preempt", 20, step=2)]

    assert len(double(row(2, "v"), lifecycle=told)) == 1


def test_who_is_put_back_outside_of_steps_waits_only_from_then_on() -> None:
    told = [event("v", "arrive", 0), event("v", "admit", 10, step=1)]
    lost = [event("v", "preempt", 20, step=2), event("v", "resume", 21, step=2)]
    put_back = [event("v", "defer", 25)]

    assert double(row(2, "v"), lifecycle=told + lost + put_back) == []


def test_a_victim_that_had_just_been_resumed_is_found() -> None:
    lost = [event("a", "preempt", 20, step=2)]
    back = [event("a", "resume", 30, step=3), event("a", "preempt", 30, step=3)]

    (found,) = double(row(1, "a"), row(3, "a"), lifecycle=lost + back)

    assert found.step == 3


@looped(
    "lifecycle",
    [
        pytest.param([event("a", "preempt", 30, step=3)], id="evicted a step later"),
        pytest.param(
            [event("a", "preempt", 20, step=2), event("a", "resume", 20, step=2)],
            id="evicted and let in again",
        ),
        pytest.param([event("b", "preempt", 20, step=2)], id="somebody else"),
    ],
)
def test_rows_of_requests_that_run_are_clean(lifecycle: list[Row]) -> None:
    assert double(row(1, "a"), row(2, "a"), lifecycle=lifecycle) == []


def test_a_row_for_a_victim_in_a_recorded_run_is_found(record: Record) -> None:
    trace = record("fcfs-preemption")
    lost = trace.lifecycle.filter(pl.col("event") == "preempt").collect().row(0, named=True)
    rows = trace.batch_rows.collect()
    left = rows.filter(pl.col("step") == lost["step"]).head(1)
    left = left.with_columns(request=pl.lit(lost["request"]))
    broken = {"batch_rows": pl.concat([rows, left]), "lifecycle": trace.lifecycle.collect()}

    assert DoubleScheduled().check(trace) == []
    (found,) = DoubleScheduled().check(Trace.from_tables(broken, trace.manifest))
    assert (found.request, found.step) == (lost["request"], lost["step"])


@looped(
    ("scenario", "variant"),
    [
        ("fcfs-preemption", "before"), ("fcfs-preemption", "after"), ("slot-recycling", "before"),
        ("slot-recycling", "after"), ("mix-admission", "after"),
    ],
)  # fmt: skip
def test_the_engine_schedules_nobody_twice(record: Record, scenario: str, variant: str) -> None:
    assert DoubleScheduled().check(record(scenario, variant)) == []
