"""TRC007 on recordings of the reference engine in which a row is missing or a count was edited."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope.analyzers.rules.trc.trc007_rows_contradict import RowsContradict
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import event
from tests.looped import looped
from tests.traces import trace_of


def edited(trace: Trace, table: str, edit: Callable[[pl.DataFrame], pl.DataFrame]) -> list[str]:
    """What is found after an edit of one table of a recording, in which nothing is found."""
    assert RowsContradict().check(trace) == []
    rows = trace.table(table).collect().with_row_index("place")
    frame = edit(rows).drop("place")
    found = RowsContradict().check(trace.replacing({table: frame.lazy()}, trace.manifest))
    return [finding.message for finding in found]


def without_one(event: str, share: float) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def edit(rows: pl.DataFrame) -> pl.DataFrame:
        own = rows.filter(pl.col("event") == event).sort("ts_ns", "place")["place"]
        return rows.filter(pl.col("place") != own[int(share * len(own))])

    return edit


def added(column: str, number: int, place: int = 40) -> Callable[[pl.DataFrame], pl.DataFrame]:
    more = pl.when(pl.col("place") == place).then(number).otherwise(0)
    return lambda rows: rows.with_columns((pl.col(column) + more).cast(rows.schema[column]))


@looped("share", [0.1, 0.5, 0.9])
def test_a_request_without_its_arrival_or_its_resumption_is_found(
    record: Record, share: float
) -> None:
    trace = record("fcfs-preemption")

    (arrival,) = edited(trace, "lifecycle", without_one("arrive", share))
    (resumption,) = edited(trace, "lifecycle", without_one("resume", share))

    assert "never arrived" in arrival
    assert "was not resumed" in resumption


def test_a_step_that_counts_another_number_of_requests_or_blocks_is_found(record: Record) -> None:
    trace = record("fcfs-preemption")

    (requests,) = edited(trace, "steps", added("num_decode_reqs", 1))
    (total,) = edited(trace, "steps", added("kv_blocks_total", 100))

    assert "its batch has" in requests
    assert "KV blocks, and all others 60" in total


def test_a_pool_that_is_smaller_than_what_is_owned_is_found(record: Record) -> None:
    few = pl.lit(30, pl.Int64)

    (found,) = edited(
        record("fcfs-preemption"), "steps",
        lambda rows: rows.with_columns(
            kv_blocks_total=few, kv_blocks_free=pl.min_horizontal("kv_blocks_free", few)
        ),
    )  # fmt: skip

    assert found.startswith("requests own ")
    assert found.endswith("and there are 30")


def test_a_block_of_a_request_that_ends_last_and_does_not_release_it_is_found(
    record: Record,
) -> None:
    trace = record("fcfs-preemption")
    released = pl.col("op") == "release"

    def edit(rows: pl.DataFrame) -> pl.DataFrame:
        last = rows.filter(released).sort("ts_ns", "place").tail(1)["place"][0]
        return rows.filter(pl.col("place") != last)

    (found,) = edited(trace, "allocations", edit)

    assert "did not release 1 of what it owned" in found


def began(num_running: int, ts_ns: int) -> list[str]:
    """Of twelve requests one has no arrival; the first batch has the eleven others."""
    names = [f"r{number:02}" for number in range(12)]
    life = [
        event(name, what, at) for name in names[1:] for what, at in (("arrive", 2), ("admit", 4))
    ]
    life += [event(names[0], "admit", ts_ns)]
    life += [event(name, "finish", 99) for name in names]
    step = {"kind": "decode", "num_running": num_running}
    row = {"phase": "decode", "num_tokens": 1}
    trace = trace_of(
        steps=[{"step": n, "ts_ns": 10 * n, "dur_ns": 9, **step} for n in (1, 2, 3)],
        batch_rows=[
            {"step": n, "ts_ns": 10 * n, "request": name, **row}
            for n in (1, 2, 3)
            for name in names[1:]
        ],
        lifecycle=life,
    )
    return [found.message for found in RowsContradict().check(trace)]


def test_a_request_that_may_have_been_there_before_the_recording_is_no_contradiction() -> None:
    assert began(11, 5) == ["r00 has an event (admit) and never arrived"]
    assert began(12, 5) == []  # one ran before that is in no batch yet
    assert began(11, 4) == []  # it may have been first in the queue


def test_pools_of_several_sizes_and_counts_that_never_agree_are_no_contradiction(
    record: Record,
) -> None:
    trace = record("fcfs-preemption")

    def other_half(rows: pl.DataFrame) -> pl.DataFrame:
        is_late = pl.col("place") > rows.height // 2
        return rows.with_columns(kv_blocks_total=pl.col("kv_blocks_total") + 10 * is_late)

    def other_counts(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(pl.col("num_decode_reqs") + 1)

    assert edited(trace, "steps", other_half) == []
    assert edited(trace, "steps", other_counts) == []
