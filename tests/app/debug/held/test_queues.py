"""Queues and pools at any time equal those of replaying the rows one by one."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.debug.held import queues
from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.index import laid_out
from stepscope.app.debug.held.pools import Pool, holds_of
from stepscope.app.debug.held.queues import Queues
from stepscope.ingest.schema import ALLOCATION_OPS, LIFECYCLE_EVENTS
from tests import traces
from tests.tiers import slow

OPS, EVENTS = ALLOCATION_OPS, LIFECYCLE_EVENTS
Rows = list[dict[str, Any]]


def frame_of(table: str, rows: Rows) -> pl.DataFrame:
    """Rows of a table whose place in the order is their time."""
    return traces.frame_of(table, rows).with_columns(seq="ts_ns")


def queues_of(lifecycle: pl.DataFrame, queue_order: pl.DataFrame | None = None) -> Queues:
    """The queues of some rows."""
    return Queues(**laid_out(queues.queue_events(lifecycle, queue_order)) or {})


@st.composite
def allocations(draw: st.DrawFn) -> Rows:
    """Any order of operations, also such as no sound engine would do."""
    row = st.fixed_dictionaries(
        {
            "ts_ns": st.integers(0, 12),
            "resource": st.just("kv-block"),
            "id": st.integers(0, 3),
            "op": st.sampled_from(OPS),
            "owner": st.sampled_from("abc"),
        }
    )
    return sorted(draw(st.lists(row, max_size=40)), key=lambda each: int(each["ts_ns"]))


def replayed(rows: Rows, ts_ns: int) -> dict[int, str]:
    owners: dict[int, list[str]] = {}
    for row in rows:
        if row["ts_ns"] > ts_ns:
            break
        number, owner = row["id"], row["owner"]
        held = owners.get(number, [])
        match row["op"]:
            case "claim" | "move":
                owners[number] = [owner]
            case "share":
                owners[number] = [*held, owner]
            case "release" | "let-go":
                owners[number] = [name for name in held if name != owner]
    return {number: held[0] for number, held in owners.items() if held}


@slow
@given(allocations(), st.integers(-1, 13))
def test_the_holders_of_blocks_are_those_of_replaying_every_row(rows: Rows, ts_ns: int) -> None:
    pool = Pool(FlatRows.of(holds_of(frame_of("allocations", rows))))

    assert pool.at(ts_ns) == replayed(rows, ts_ns)


@st.composite
def lifecycles(draw: st.DrawFn) -> Rows:
    row = st.fixed_dictionaries(
        {
            "ts_ns": st.integers(0, 30),
            "request": st.sampled_from("abcdef"),
            "event": st.sampled_from(EVENTS),
            "queue_index": st.none() | st.integers(0, 3),
        }
    )
    return sorted(draw(st.lists(row, max_size=60)), key=lambda each: int(each["ts_ns"]))


@given(lifecycles(), st.lists(st.integers(-1, 31), min_size=1, max_size=6))
def test_queues_at_any_time_do_not_depend_on_what_was_asked_before(
    rows: Rows, times: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queues, "KEYFRAME_EVERY", 3)
        wandering = queues_of(frame_of("lifecycle", rows))
        reached = [wandering.at(ts_ns) for ts_ns in times]

    fresh = [queues_of(frame_of("lifecycle", rows)).at(ts_ns) for ts_ns in times]
    assert reached == fresh


@slow
@given(lifecycles())
def test_nobody_waits_and_runs_at_once_or_twice(rows: Rows) -> None:
    waiting, running = queues_of(frame_of("lifecycle", rows)).at(31)

    assert len({*waiting, *running}) == len(waiting) + len(running)


def test_a_request_takes_the_place_in_the_queue_that_the_event_names() -> None:
    rows = [
        {"ts_ns": 0, "request": "a", "event": "arrive", "queue_index": 0},
        {"ts_ns": 1, "request": "b", "event": "arrive", "queue_index": 1},
        {"ts_ns": 2, "request": "c", "event": "arrive", "queue_index": 1},
        {"ts_ns": 3, "request": "a", "event": "admit"},
        {"ts_ns": 4, "request": "a", "event": "preempt", "queue_index": 0},
        {"ts_ns": 5, "request": "d", "event": "arrive"},
        {"ts_ns": 6, "request": "b", "event": "admit"},
    ]
    found = queues_of(frame_of("lifecycle", rows))

    assert found.at(2) == (("a", "c", "b"), ())
    assert found.at(3) == (("c", "b"), ("a",))
    assert found.at(6) == (("a", "c", "d"), ("b",))


def test_a_queue_that_was_sorted_anew_stands_in_its_order() -> None:
    rows = [{"ts_ns": n, "request": name, "event": "arrive"} for n, name in enumerate("abcd")]
    orders = [
        {"step": 1, "ts_ns": 6, "index": place, "request": name, "queue": "waiting"}
        for place, name in ((1, "a"), (0, "d"))
    ]
    later = [
        {"ts_ns": 5, "request": "c", "event": "admit"},
        {"ts_ns": 7, "request": "e", "event": "arrive"},
    ]

    found = queues_of(frame_of("lifecycle", [*rows, *later]), frame_of("queue_order", orders))

    assert found.at(5) == (("a", "b", "d"), ("c",))
    assert found.at(6) == (("d", "b", "a"), ("c",))
    assert found.at(7) == (("d", "b", "a", "e"), ("c",))


def test_keyframes_hold_at_most_four_ids_an_event() -> None:
    rows = [
        {"ts_ns": n, "request": f"r{n}", "event": "arrive", "queue_index": n} for n in range(9000)
    ]
    long = queues_of(frame_of("lifecycle", rows))

    long.at(9000)

    kept = long._keyframes
    assert len(kept) > 6
    assert sum(len(waiting) for _, waiting, _ in kept) <= 4 * len(rows)


def test_rows_are_applied_in_the_order_of_their_times() -> None:
    rows = frame_of(
        "lifecycle",
        [
            {"ts_ns": 9, "request": "a", "event": "admit"},
            {"ts_ns": 3, "request": "a", "event": "arrive", "queue_index": 0},
        ],
    )

    assert queues_of(rows).at(9) == ((), ("a",))
