"""KVB007: the request removed from the queue is not the one admitted."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb007_wrong_request_taken import WrongRequestTaken
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event, life
from tests.looped import looped
from tests.traces import trace_of

RUNS = [event("r1", "arrive", 0), event("r1", "admit", 10)]


def taken(*rows: Row) -> list[Finding]:
    return WrongRequestTaken().check(trace_of(lifecycle=rows))


def test_a_request_that_is_admitted_while_it_runs_is_found() -> None:
    (found,) = taken(*RUNS, event("r1", "admit", 20), event("r1", "admit", 30))

    assert found.message == "r1 was admitted 2 times while it ran: first in step 20"
    assert (found.request, found.ts_ns, found.end_ns, found.count) == ("r1", 20, 30, 2)


def test_the_request_that_was_lost_in_its_place_is_named() -> None:
    victim = [
        event("r2", "arrive", 0), event("r2", "admit", 5),
        event("r2", "preempt", 10, by_request="r1"),
    ]  # fmt: skip

    (found,) = taken(*RUNS, *victim, event("r1", "admit", 20), event("r2", "abort", 90))

    assert found.message.endswith("first in step 20; r2, preempted for it, was lost")
    assert found.evidence["lost"] == "r2"


def test_a_victim_that_came_back_was_not_lost() -> None:
    victim = [event("r2", "arrive", 0), event("r2", "preempt", 10, by_request="r1")]

    (found,) = taken(*RUNS, *victim, event("r2", "resume", 15), event("r1", "admit", 20))

    assert "lost" not in found.evidence


@looped("between", ["preempt", "defer"])
def test_a_request_that_waited_in_between_is_clean(between: str) -> None:
    assert taken(*RUNS, event("r1", between, 15), event("r1", "resume", 20)) == []


def test_a_request_whose_arrival_was_not_recorded_is_not_judged() -> None:
    assert taken(event("r1", "admit", 10), event("r1", "admit", 20), *life("r2", 0, 1, 2)) == []


def test_a_front_that_is_popped_after_a_preemption_is_found_in_a_recorded_run(
    record: Record,
) -> None:
    trace = record("fcfs-preemption")
    rows = trace.lifecycle.collect()
    victim = rows.filter(pl.col("event") == "preempt").row(0, named=True)
    # Whom it was preempted for stays in the queue and is admitted again, in place of the victim.
    is_back = (pl.col("request") == victim["request"]) & (pl.col("event") == "resume")
    taken_for = pl.when(is_back).then(pl.lit(victim["by_request"])).otherwise("request")
    broken = rows.with_columns(request=taken_for)

    assert WrongRequestTaken().check(trace) == []
    (found,) = WrongRequestTaken().check(Trace.from_tables({"lifecycle": broken}, trace.manifest))
    assert found.request == victim["by_request"]


def test_a_victim_that_is_popped_in_place_of_the_admitted_is_found(record: Record) -> None:
    fault = "victim-popped-instead-of-admitted"

    (found,) = WrongRequestTaken().check(record("fcfs-preemption", fault=fault))

    assert found.message == (
        "req-10 was admitted 1 time while it ran: first in step 23; req-09, preempted for it, "
        "was lost"
    )


@looped("variant", ["before", "after", "order-only", "defer-only"])
def test_engines_that_take_whom_they_admit_are_clean(record: Record, variant: str) -> None:
    assert WrongRequestTaken().check(record("fcfs-preemption", variant)) == []
