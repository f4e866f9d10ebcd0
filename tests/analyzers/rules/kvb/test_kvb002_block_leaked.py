"""KVB002: blocks and slots that a request which ended never released."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb002_block_leaked import BlockLeaked
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, event
from tests.analyzers.serving_rows import owned
from tests.looped import looped
from tests.traces import trace_of

LIFE = [event("a", "arrive", 0), event("b", "arrive", 0), event("b", "finish", 1_000)]


def kept(*rows: Row, ended: Row | None = None, **manifest: Any) -> Trace:
    life = [*LIFE, ended or event("a", "abort", 400, cause="the client hung up")]
    return trace_of(allocations=rows, lifecycle=life, **manifest)


def leaked(*rows: Row, ended: Row | None = None) -> list[Finding]:
    return BlockLeaked().check(kept(*rows, ended=ended))


@looped(
    "rows",
    [
        pytest.param([owned("claim", 4, "a", 10), owned("let-go", 4, "a", 400)], id="let go"),
        pytest.param([owned("cache", 4, "a", 10, block_hash="beef")], id="cached"),
        pytest.param(
            [
                owned("claim", 4, "a", 10),
                owned("release", 4, "a", 400),
                owned("cache", 4, "a", 400),
            ],
            id="free and cached",
        ),
    ],
)
def test_blocks_that_nobody_owns_any_more_did_not_leak(rows: list[Row]) -> None:
    assert leaked(*rows) == []


def test_blocks_of_a_request_that_ended_are_found() -> None:
    (found,) = leaked(*(owned("claim", block, "a", 10) for block in (4, 5)))

    assert found.message == (
        "2 KV blocks of 1 request were never released: first 2 of a, which ended 600 ns before the "
        "end of the trace"
    )
    assert (found.request, found.ts_ns, found.end_ns, found.count) == ("a", 400, 1_000, 2)
    assert found.evidence["first ended by"] == "abort: the client hung up"


@looped(
    "rows",
    [
        pytest.param([owned("release", 4, "a", 400)], id="released in the end"),
        pytest.param([owned("release", 4, "a", 700)], id="released late"),
        pytest.param([owned("claim", 9, "c", 20)], id="an owner without an end"),
        pytest.param([owned("claim", 9, "b", 20)], id="an end that is that of the trace"),
    ],
)
def test_blocks_that_are_released_or_may_be_needed_are_clean(rows: list[Row]) -> None:
    released = [owned("release", 4, "a", 400)]

    assert leaked(owned("claim", 4, "a", 10), *released, *rows) == []


def test_shared_blocks_leak_too() -> None:
    rows = [owned("claim", 4, "b", 10), owned("share", 4, "a", 20), owned("release", 4, "b", 1_000)]

    assert [each.request for each in leaked(*rows)] == ["a"]


def test_slots_and_blocks_are_findings_of_their_own() -> None:
    rows = [owned("claim", 4, "a", 10), owned("claim", 0, "a", 10, resource="slot")]

    found = leaked(*rows)

    assert [each.message.split(" of ")[0] for each in found] == ["1 KV block", "1 slot"]


@looped(
    "doubt", [{"closed": False}, {"tables": {"allocations": "partial", "lifecycle": "complete"}}]
)
def test_it_is_not_applicable_when_rows_may_be_missing(doubt: dict[str, Any]) -> None:
    trace = kept(owned("claim", 4, "a", 10), **doubt)

    assert check(trace, (BlockLeaked(),)).not_applicable == ("KVB002",)


def test_an_end_that_releases_nothing_is_found_in_a_recorded_run(record: Record) -> None:
    trace = record("fcfs-preemption")
    rows, life = trace.allocations.collect(), trace.lifecycle.collect()
    first = life.filter(pl.col("event") == "finish")["request"][0]
    is_release = (pl.col("op") == "release") & (pl.col("owner") == first)
    held = rows.filter(is_release).height
    tables = {"allocations": rows.filter(~is_release), "lifecycle": life}

    (found,) = BlockLeaked().check(Trace.from_tables(tables, trace.manifest))

    assert (found.request, found.count) == (first, held)


@looped(
    ("scenario", "variant"),
    [
        ("fcfs-preemption", "before"), ("fcfs-preemption", "after"), ("slot-recycling", "before"),
        ("slot-recycling", "after"), ("mix-admission", "after"),
    ],
)  # fmt: skip
def test_engines_that_release_are_clean(record: Record, scenario: str, variant: str) -> None:
    assert BlockLeaked().check(record(scenario, variant)) == []


def test_an_engine_whose_requests_keep_their_last_block_is_found(record: Record) -> None:
    (found,) = BlockLeaked().check(record("fcfs-preemption", fault="block-leaked"))

    # The last five end with the trace: nobody can tell yet that theirs are not released.
    assert (found.request, found.count, found.evidence["requests"]) == ("req-00", 35, 35)


def test_a_block_that_two_requests_share_and_leak_is_one_block() -> None:
    rows = [owned("claim", 4, "a", 10), owned("share", 4, "b", 20), owned("release", 9, "x", 30)]
    ends = [event(request, "finish", 400) for request in ("a", "b")]
    trace = trace_of(allocations=rows, lifecycle=[*ends, event("c", "arrive", 1_000)])

    (found,) = BlockLeaked().check(trace)

    assert found.message.startswith("1 KV block of 2 requests was never released")
