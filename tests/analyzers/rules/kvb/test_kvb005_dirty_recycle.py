"""KVB005: a read sees what an earlier owner of the slot left there."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb005_dirty_recycle import DirtyRecycle
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import owned
from tests.looped import looped
from tests.traces import trace_of

LAYOUT = {"layout": {"num_slots": 2, "slot_tokens": 8, "token_bytes": 10}}
OWNED = [
    owned("claim", 1, "old", 10, resource="slot"), owned("release", 1, "old", 50, resource="slot"),
    owned("claim", 1, "new", 50, resource="slot"),
]  # fmt: skip
WRITTEN = [("write", 20, 1), ("write", 30, 2), ("write", 60, 3)]


def access(op: str, ts_ns: int, epoch: int, slot: int = 1, **more: Any) -> Row:
    return {
        "op": op, "ts_ns": ts_ns, "step": ts_ns, "epoch": epoch, "buffer": "kv", "stream": "host",
        "first": 80 * slot, "last": 80 * slot + 40,
    } | more  # fmt: skip


def recycled(*reads: Row, config: dict[str, Any]) -> Trace:
    rows = [*(access(*each) for each in WRITTEN), *reads]
    return trace_of(accesses=rows, allocations=OWNED, config=config)


def dirty(*reads: Row) -> list[Finding]:
    return DirtyRecycle().check(recycled(*reads, config=LAYOUT))


def test_a_read_of_what_an_earlier_owner_wrote_is_found() -> None:
    (found,) = dirty(access("read", 70, 2), access("read", 80, 1))

    assert found.message == (
        "new read 2 times in slot 1 what old had left there: first 40 bytes in step 70"
    )
    assert (found.request, found.ts_ns, found.end_ns, found.count) == ("new", 70, 80, 2)


def test_a_read_of_which_the_end_is_not_known_is_told_without_its_bytes() -> None:
    (found,) = dirty(access("read", 70, 2, last=None))

    assert found.message.endswith("what old had left there: first some in step 70")


@looped(
    "read",
    [
        pytest.param(access("read", 70, 3), id="its own"),
        pytest.param(access("read", 40, 2), id="the earlier owner's own"),
        pytest.param(access("read", 55, 2), id="before the owner wrote anything"),
        pytest.param(access("read", 70, 2, slot=0), id="a slot that nobody has"),
    ],
)
def test_other_reads_are_clean(read: Row) -> None:
    assert dirty(read) == []


@looped("config", [{}, {"layout": {"slot_tokens": "8"}}, {"layout": 3}])
def test_without_the_size_of_a_slot_it_is_not_applicable(config: dict[str, Any]) -> None:
    trace = recycled(access("read", 70, 2), config=config)

    assert check(trace, (DirtyRecycle(),)).not_applicable == ("KVB005",)
    assert DirtyRecycle().check(trace) == []


def test_a_slot_that_is_recycled_without_clearing_is_found(record: Record) -> None:
    (found,) = DirtyRecycle().check(record("slot-recycling", fault="recycle-without-clearing"))

    assert found.count == 13
    assert (found.request, found.evidence["written by"]) == ("req-04", "req-01")
    assert found.step == 14


@looped("variant", ["before", "after"])
@looped("fault", [None, "skip-mirror-refresh"])
def test_slots_that_start_clean_are_clean(record: Record, variant: str, fault: str | None) -> None:
    chosen = fault if variant == "before" else None

    assert DirtyRecycle().check(record("slot-recycling", variant, chosen)) == []
