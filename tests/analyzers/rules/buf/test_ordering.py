"""Happens-before: vector clocks over recorded events and the order of streams."""

from __future__ import annotations

from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.rules.buf.ordering import HOST, knowledge, touches, unordered
from tests.analyzers.rank_rows import access, ordered, sync
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of

STREAMS = ("host", "copy", "compute", "side")


def raced(*rows: Row) -> list[tuple[int, int]]:
    """When a read and the last write of another stream before it have no order."""
    trace = trace_of(accesses=rows)
    accesses = touches(trace)
    reads, writes = accesses.filter(~pl.col("is_write")), accesses.filter("is_write")
    found = unordered(reads, writes, "backward", trace).sort("ts_ns").collect()
    return list(zip(found["ts_ns"], found["other_ts_ns"], strict=True))


WRITE, READ = access("copy", "write", 10), access("compute", "read", 90)


def test_two_streams_without_an_event_between_them_are_unordered() -> None:
    assert raced(WRITE, READ) == [(90, 10)]


@looped(
    "between",
    [
        pytest.param(ordered("copy", "compute", 20), id="an event"),
        pytest.param(
            ordered("copy", "side", 20, "a") + ordered("side", "compute", 40, "b"), id="a chain"
        ),
        pytest.param(ordered("copy", "host", 20), id="the host, which issues the read later"),
        pytest.param([sync("compute", "synchronize", 20, "copy")], id="a stream's end"),
        pytest.param([sync("compute", "synchronize", 20)], id="the end of all streams"),
        pytest.param(
            [*ordered("copy", "compute", 20), sync("copy", "record", 50, "e")],
            id="an event that is recorded again later",
        ),
    ],
)
def test_whatever_leads_from_one_to_the_other_orders_them(between: list[Row]) -> None:
    assert raced(WRITE, *between, READ) == []


@looped(
    "between",
    [
        pytest.param(ordered("compute", "copy", 20), id="the other way round"),
        pytest.param(ordered("copy", "side", 20), id="for somebody else"),
        pytest.param(ordered("copy", "compute", 5), id="an event before the write"),
        pytest.param([sync("compute", "wait", 20, "e")], id="an event that nobody recorded"),
        pytest.param(
            [sync("compute", "wait", 20, "e"), sync("copy", "record", 30, "e")],
            id="a wait before the record",
        ),
        pytest.param(
            ordered("side", "compute", 20, "b") + ordered("copy", "side", 40, "a"),
            id="a chain in the wrong order",
        ),
        pytest.param(
            [sync("copy", "record", 15, "e"), sync("side", "record", 20, "e"),
             sync("compute", "wait", 25, "e")],
            id="an event that somebody else recorded since",
        ),
    ],
)  # fmt: skip
def test_what_does_not_lead_there_does_not_order_them(between: list[Row]) -> None:
    assert raced(WRITE, *between, READ) == [(90, 10)]


def test_what_the_host_did_before_it_issued_a_read_is_before_it() -> None:
    assert raced(access("host", "write", 10), READ) == []


def test_rows_of_one_moment_are_given_the_order_that_holds_no_race() -> None:
    moment = [sync("compute", "wait", 50, "e"), sync("copy", "record", 50, "e")]

    assert raced(access("copy", "write", 50), *moment, access("compute", "read", 51)) == []
    assert raced(access("copy", "write", 50), access("compute", "read", 50)) == []


@looped(
    ("write", "found"),
    [
        pytest.param({"first": 4, "last": 12}, [(90, 10)], id="a part"),
        pytest.param({"first": 8, "last": 12}, [], id="the bytes behind"),
        pytest.param({"buffer": "another"}, [], id="another buffer"),
        pytest.param({"first": None, "last": None}, [(90, 10)], id="all of it"),
        pytest.param({"rank": 1}, [], id="another rank"),
    ],
)
def test_only_what_overlaps_can_race(write: Row, found: list[tuple[int, int]]) -> None:
    assert raced(WRITE | write, READ) == found


def test_rows_at_other_places_do_not_hide_the_write_to_the_same_place() -> None:
    behind = [access("copy", "write", 20 + n, first=8 * n, last=8 * n + 8) for n in range(1, 5)]

    assert raced(WRITE, *behind, READ) == [(90, 10)]


_rows = st.lists(
    st.tuples(
        st.sampled_from(STREAMS), st.sampled_from(["record", "wait", "synchronize", "touch"]),
        st.sampled_from(["e", "f", "copy", None]),
    ),
    max_size=30,
)  # fmt: skip


@given(_rows, st.randoms(use_true_random=False))
def test_clocks_say_what_a_walk_through_all_rows_says(
    rows: list[tuple[str, str, str | None]], random: Random
) -> None:
    moments = [(10 * n + 10, *row) for n, row in enumerate(rows)]
    written = [
        access(stream, "read", ts_ns) if op == "touch" else sync(stream, op, ts_ns, event)
        for ts_ns, stream, op, event in moments
    ]
    trace = trace_of(accesses=random.sample(written, len(written)))

    known: dict[tuple[str, str], int] = {}
    for stream, other, _, known_ns in sorted(
        knowledge(trace).select("stream", "other", "ts_ns", "known_ns").collect().rows(),
        key=lambda row: row[2],
    ):
        known[stream, other] = known_ns
    assert known == _walked(moments)


def _walked(moments: list[tuple[int, str, str, str | None]]) -> dict[tuple[str, str], int]:
    """What each stream knows of each other in the end, by sets of rows instead of clocks."""
    seen: dict[str, set[tuple[str, int]]] = {stream: set() for stream in STREAMS}
    events: dict[str, set[tuple[str, int]]] = {}
    streams = {stream for _, stream, _, _ in moments}
    issued: dict[str, int] = {}
    for ts_ns, stream, op, event in moments:
        if op == "touch":
            continue
        if stream != HOST:
            seen[stream] |= seen[HOST]
        seen[stream].add((stream, ts_ns))
        if op == "record" and event:
            events[event] = set(seen[stream])
        elif op != "record" and event in events:
            seen[stream] |= events[event]
        elif op == "synchronize":
            for other in streams if event is None else {event}:
                seen[stream] |= seen.get(other, set()) | {(other, ts_ns)}
        issued[stream] = ts_ns
    return {
        (stream, other): max(ts_ns for name, ts_ns in seen[stream] if name == other)
        for stream in issued
        for other in {name for name, _ in seen[stream]} - {stream, HOST}
    }
