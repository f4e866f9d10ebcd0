"""COL004: a command for a slot that was not allocated, or out of range."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.col.col004_unallocated_slot import UnallocatedSlot
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import collective, slot, word
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of

WORKER = [slot(1, 0, "slot 0"), slot(1, 1, "slot 1"), slot(1, 1, "slot 1", "release", ts_ns=25)]
CONFIG = {"parallel": {"num_slots": 4, "codebook": {"shutdown": "0xffffffff"}}}
HEAD = word(0, 0, "prefill", 0)


def unallocated(*rows: Row) -> list[Finding]:
    trace = trace_of(collectives=[HEAD, *rows], allocations=WORKER, config=CONFIG)
    return UnallocatedSlot().check(trace)


def test_commands_for_a_slot_that_the_worker_does_not_have_are_found() -> None:
    (found,) = unallocated(word(1, 1, "prefill", 2), word(1, 2, "decode", 2))

    assert found.message == (
        "rank 1 was given 2 commands for slot 2, which it has not allocated: first prefill in "
        "step 1"
    )
    assert (found.rank, found.ts_ns, found.end_ns) == (1, 10, 20)


def test_a_slot_that_was_released_is_not_allocated_any_more() -> None:
    assert len(unallocated(word(1, 2, "decode", 1), word(1, 3, "decode", 1))) == 1


@looped("number", [4, -5])
def test_a_slot_that_does_not_exist_is_found(number: int) -> None:
    (found,) = unallocated(word(1, 1, "allocate", number))

    assert f"slot {number}, which does not exist: there are 4" in found.message


@looped(
    "row",
    [
        pytest.param(word(1, 1, "decode", 0), id="a slot that it has"),
        pytest.param(word(1, 1, "allocate", 2), id="a slot that is allocated now"),
        pytest.param(word(1, 1, "slot", 2), id="the word before the command"),
        pytest.param(word(1, 1, "prefill: tokens", 2), id="what a command needs"),
        pytest.param(collective(1, 1, command="decode", slot=2), id="a layer's"),
        pytest.param(word(0, 1, "decode", 2), id="the head's own side"),
        pytest.param(word(1, 1, "decode-batch"), id="no slot"),
        pytest.param(word(1, 1, "decode", -1), id="a word that is a command, see COL005"),
    ],
)
def test_other_commands_are_clean(row: Row) -> None:
    assert unallocated(row) == []


def test_a_worker_that_allocated_one_slot_only_is_found(record: Record) -> None:
    (found,) = UnallocatedSlot().check(record("ep-multiplexing", fault="slots-not-allocated"))

    assert (found.rank, found.evidence["slot"], found.evidence["first"]) == (1, 1, "prefill")


@looped("variant", ["before", "after"])
def test_slots_that_are_allocated_up_front_are_clean(record: Record, variant: str) -> None:
    clean = record("ep-multiplexing", variant, requests="6", max_tokens="5", stagger="1")
    assert UnallocatedSlot().check(clean) == []
