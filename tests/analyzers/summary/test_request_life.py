"""A request's life has every row that is about it, in true order."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.summary.request_life import BATCH, DECISION, EVENT, request_life
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import decision, event
from tests.analyzers.serving_rows import row
from tests.analyzers.summary.every_trace import each_file, opened
from tests.tiers import slow
from tests.traces import trace_of


def told(trace: Trace, request: str = "r") -> list[str]:
    """What each moment is: an event by its name, the others by their kind."""
    moments = request_life(trace, 0, request).moments
    return [m.row["event"] if m.kind == EVENT else m.kind for m in moments]


def test_the_order_is_that_of_changes_where_these_are_counted() -> None:
    trace = trace_of(
        lifecycle=[event("r", "arrive", 5, seq=1), event("r", "admit", 5, seq=3)],
        decisions=[decision("request", "r", "deferred", 4, seq=2)],
        batch_rows=[row(1, "r", seq=4) | {"ts_ns": 5}],
    )

    assert told(trace) == ["arrive", DECISION, "admit", BATCH]
    assert request_life(trace, 0, "r").is_counted


def test_without_a_count_it_is_by_time_and_an_arrival_goes_first() -> None:
    trace = trace_of(
        lifecycle=[event("r", "finish", 30), event("r", "admit", 10), event("r", "arrive", 10)],
        decisions=[decision("request", "r", "deferred", 10)],
        batch_rows=[row(1, "r")],
    )

    assert told(trace) == ["arrive", DECISION, "admit", BATCH, "finish"]
    assert not request_life(trace, 0, "r").is_counted


def test_what_is_decided_again_and_again_is_one_moment_with_its_count() -> None:
    again = [decision("request", "r", "deferred", at, resource="seat") for at in (1, 2, 3)]
    other = decision("request", "r", "deferred", 4, resource="kv-block", holder="q")

    moments = request_life(trace_of(decisions=[*again, other]), 0, "r").moments

    assert [(m.num, m.row["ts_ns"], m.last["ts_ns"]) for m in moments] == [(3, 1, 3), (1, 4, 4)]


def test_batches_in_a_row_are_one_moment_and_what_is_computed_again_is_another() -> None:
    rows = [row(1, "r", 5), row(2, "r", 1), row(3, "r", 7, is_recompute=True), row(4, "r", 1)]

    life = request_life(trace_of(batch_rows=rows), 0, "r")

    assert [(m.num, m.num_tokens) for m in life.moments] == [(2, 6), (1, 7), (1, 1)]
    assert (life.num_again, life.tokens_again) == (1, 7)


def test_holders_are_named_once_in_order() -> None:
    trace = trace_of(
        lifecycle=[event("r", "preempt", 9, by_request="z")],
        decisions=[
            decision("request", "r", "deferred", at, holder=name)
            for at, name in ((1, "b"), (2, "a"), (3, "b"))
        ],
    )

    assert request_life(trace, 0, "r").holders() == ("b", "a", "z")


def test_another_ranks_request_of_the_same_name_is_another() -> None:
    told_of = [event("r", "arrive", 0), event("r", "arrive", 1, rank=1)]

    assert len(request_life(trace_of(lifecycle=told_of), 1, "r").moments) == 1


@slow
@each_file
def test_of_every_file_a_life_has_each_row_once(name: str) -> None:
    trace = opened(name)
    who = trace.lifecycle.select("rank", "request").drop_nulls().unique(maintain_order=True)
    for rank, request in who.head(5).collect().iter_rows():
        is_it = (pl.col("rank") == rank) & pl.col("ts_ns").is_not_null()
        counted = {
            EVENT: trace.lifecycle.filter(is_it, pl.col("request") == request),
            DECISION: trace.decisions.filter(
                is_it, pl.col("subject_kind") == "request", pl.col("subject") == request
            ),
            BATCH: trace.batch_rows.filter(is_it, pl.col("request") == request),
        }

        life = request_life(trace, rank, request)

        for kind, rows in counted.items():
            own = [m for m in life.moments if m.kind == kind]
            assert sum(m.num for m in own) == rows.collect().height
        again = counted[BATCH].filter("is_recompute").collect()
        assert life.tokens_again == again["num_tokens"].sum()
        times = [m.row["ts_ns"] for m in life.moments]
        seqs = [m.row["seq"] for m in life.moments]
        assert (seqs == sorted(seqs)) if life.is_counted else (times == sorted(times))
