"""COL003: head and worker hold a request in different slots, or one side moved it."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col003_slot_mismatch import SlotMismatch
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import slot
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of

HEAD = [slot(0, 0, "a"), slot(0, 1, "b")]
WORKER = [slot(1, 0, "slot 0"), slot(1, 1, "slot 1")]


def mismatched(*rows: Row) -> list[Finding]:
    return SlotMismatch().check(trace_of(allocations=rows))


def test_slots_that_a_worker_has_under_other_numbers_are_found() -> None:
    (found,) = mismatched(*HEAD, slot(1, 0, "slot 1"), slot(1, 1, "slot 0"))

    assert found.message == (
        "rank 1 has 2 slots under another number than the head: first the head's slot 1 is its "
        "slot 0"
    )
    assert found.evidence["claimed on rank 0"] == "a in slot 0, b in slot 1"
    assert found.evidence["claimed on rank 1"] == "slot 1 in slot 0, slot 0 in slot 1"


@looped(("numbers", "count"), [((1, 0), 1), ((0, 1), 0)])
def test_a_worker_is_judged_though_the_head_never_let_a_request_in(
    numbers: tuple[int, int], count: int
) -> None:
    claims = [slot(1, number, f"slot {place}") for place, number in enumerate(numbers)]
    trace = trace_of(allocations=claims)

    found = SlotMismatch().check(trace)

    assert SlotMismatch().applies(trace)
    assert len(found) == count
    assert all(
        each.evidence.keys() == {"slot", "other slot", "claimed on rank 1"} for each in found
    )


def test_a_move_on_one_side_is_found() -> None:
    (found,) = mismatched(*HEAD, *WORKER, slot(0, 0, "b", "move", ts_ns=9, step=4))

    assert found.message == "rank 0 moved b to slot 0 and rank 1 did not, 1 move in all"
    assert (found.rank, found.request, found.step) == (0, "b", 4)


def test_a_request_that_two_ranks_hold_in_different_slots_is_found() -> None:
    (found,) = mismatched(*HEAD, slot(1, 1, "a"), slot(1, 0, "b"))

    assert found.message == (
        "rank 0 and rank 1 hold 2 requests in different slots: first b, in slot 1 and in slot 0"
    )


@looped(
    "rows",
    [
        pytest.param(WORKER, id="the same numbers"),
        pytest.param([slot(1, 0, "a"), slot(1, 1, "b")], id="the same requests"),
        pytest.param([slot(1, 1, "x"), slot(1, 0, "y")], id="requests of its own"),
        pytest.param(
            [*WORKER, slot(0, 0, "b", "move", ts_ns=9), slot(1, 0, "slot 1", "move", ts_ns=9)],
            id="a move on both sides",
        ),
        pytest.param([slot(1, 1, "x"), slot(0, 0, "b", "move", ts_ns=9)],
                     id="a move beside a rank with requests of its own"),
        pytest.param([slot(1, 7, "slot 0", resource="kv-block")], id="a block"),
    ],
)  # fmt: skip
def test_slots_that_agree_are_clean(rows: list[Row]) -> None:
    assert mismatched(*HEAD, *rows) == []


@looped(
    ("fault", "rank", "count"),
    [("slot-order-differs", 1, 4), ("slot-order-refused", 1, 1), ("compaction-on-one-side", 0, 2)],
)
def test_sides_that_disagree_are_found(record: Record, fault: str, rank: int, count: int) -> None:
    (found,) = SlotMismatch().check(record("ep-multiplexing", fault=fault))

    assert (found.rank, found.count) == (rank, count)
    assert found.evidence["claimed on rank 0"]
    assert found.evidence["claimed on rank 1"]


@looped("requests", ["4", "6"])
def test_sides_that_agree_are_clean(record: Record, requests: str) -> None:
    clean = record("ep-multiplexing", requests=requests, max_tokens="5", stagger="1")
    assert SlotMismatch().check(clean) == []
