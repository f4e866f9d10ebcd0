"""KVB006: bytes per admission far above the slot's own."""

from __future__ import annotations

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb006_admit_copies_all import AdmitCopiesAll
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row
from tests.analyzers.rules.kvb.test_kvb005_dirty_recycle import LAYOUT, access
from tests.analyzers.serving_rows import owned
from tests.traces import trace_of

SLOTS = [owned("claim", 0, "a", 10, resource="slot"), owned("claim", 1, "b", 50, resource="slot")]
PROMPT_AND_DECODE = [access("write", 20, 1, slot=0), access("write", 30, 2, slot=0)]


def costly(*rows: Row) -> list[Finding]:
    told = [row | {"step": row["ts_ns"] // 50} for row in (*PROMPT_AND_DECODE, *rows)]
    claims = [row | {"step": row["ts_ns"] // 50} for row in SLOTS]
    return AdmitCopiesAll().check(trace_of(accesses=told, allocations=claims, config=LAYOUT))


def whole(op: str, ts_ns: int, epoch: int, slot: int, buffer: str) -> Row:
    first = 80 * slot
    return access(op, ts_ns, epoch, slot, buffer=buffer, first=first, last=first + 80)


def test_copies_of_other_slots_for_an_admission_are_found() -> None:
    refresh = [whole("read", 55, 2, 0, "kv"), whole("write", 55, 2, 0, "mirror")]
    commit = [whole("read", 70, 2, 0, "mirror"), whole("write", 70, 2, 0, "kv")]
    own = [whole("write", 60, 3, 1, "mirror"), whole("write", 70, 3, 1, "kv")]

    (found,) = costly(*refresh, *own, *commit)

    assert found.message == (
        "1 admission in 1 step copied 160 bytes of other slots, 2.0 times their own: worst step 1, "
        "with 160 bytes beside 80"
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (1, 55, 70, 1)
    assert found.evidence["buffer"] == "mirror"


def test_writing_the_admitted_slot_alone_is_clean() -> None:
    assert costly(whole("write", 60, 3, 1, "kv"), whole("write", 70, 3, 1, "kv")) == []


def test_a_decode_of_a_live_slot_is_no_copy() -> None:
    assert costly(whole("write", 60, 3, 0, "kv"), whole("write", 70, 4, 0, "kv")) == []


def test_copies_in_steps_that_admit_nobody_are_clean() -> None:
    saved = [whole("write", 120 + n, 2, 0, f"backup {n}") for n in range(3)]

    assert costly(*saved) == []


def test_the_host_mirror_is_found_and_the_device_write_is_clean(record: Record) -> None:
    large = {"slots": "4", "requests": "8", "max_cap": "48"}

    (before,) = AdmitCopiesAll().check(record("slot-recycling", "before", **large))

    assert before.count == 4
    assert before.evidence["copied_bytes"] == 6 * 4 * 4 * 2**20
    assert before.evidence["own_bytes"] == 4 * 4 * 2**20
    assert AdmitCopiesAll().check(record("slot-recycling", "after", **large)) == []


@each_scenario
def test_engines_without_slots_are_clean(record: Record, scenario: str) -> None:
    assert AdmitCopiesAll().check(record(scenario)) == []


def test_slots_of_unknown_size_cannot_be_judged(record: Record) -> None:
    pytest.importorskip("torch")

    result = check(record("ep-multiplexing"), (AdmitCopiesAll(),))

    assert result.not_applicable == ("KVB006",)
