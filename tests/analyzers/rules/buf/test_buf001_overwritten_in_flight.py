"""BUF001: the host writes to a buffer before an asynchronous copy from it was fenced."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.buf.buf001_overwritten_in_flight import OverwrittenInFlight
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import access, ordered, sync
from tests.analyzers.rows import Row
from tests.looped import looped
from tests.traces import trace_of

FIRST = [access("host", "write", 10, epoch=1), access("copy", "copy", 20, epoch=1)]
AGAIN = access("host", "write", 50, epoch=2)


def raced(*rows: Row) -> list[Finding]:
    return OverwrittenInFlight().check(trace_of(accesses=rows))


def test_a_write_behind_a_copy_that_nobody_waited_for_is_found() -> None:
    (found,) = raced(*FIRST, AGAIN)

    assert found.message == (
        "the host wrote b 1 time while copy may still have been reading it: first in step 1, "
        "30 ns after the read was issued"
    )
    assert (found.ts_ns, found.evidence["took the new contents"]) == (50, 0)


@looped(
    "fence",
    [
        pytest.param(ordered("copy", "host", 30), id="an event behind the copy"),
        pytest.param([sync("host", "synchronize", 30, "copy")], id="the stream's end"),
        pytest.param(ordered("copy", "compute", 30, "a") + ordered("compute", "host", 40, "b"),
                     id="an event behind whoever waited for the copy"),
    ],
)  # fmt: skip
def test_a_host_that_waited_is_clean(fence: list[Row]) -> None:
    assert raced(*FIRST, *fence, AGAIN) == []


@looped(
    "fence",
    [
        pytest.param(ordered("copy", "compute", 30), id="another stream waited"),
        pytest.param([sync("copy", "record", 15, "e"), sync("host", "wait", 40, "e")],
                     id="for what was before the copy"),
    ],
)  # fmt: skip
def test_a_wait_for_something_else_is_no_fence(fence: list[Row]) -> None:
    assert len(raced(*FIRST, *fence, AGAIN)) == 1


def test_the_time_that_passed_is_no_fence() -> None:
    assert len(raced(*FIRST, AGAIN | {"ts_ns": 10**15})) == 1


@looped("other", [{"buffer": "c"}, {"first": 8, "last": 16}, {"stream": "copy"}])
def test_a_write_to_something_else_or_by_the_copying_stream_is_clean(other: Row) -> None:
    assert raced(*FIRST, AGAIN | other) == []


def test_a_host_that_does_not_drain_the_copies_is_found(record: Record) -> None:
    found = OverwrittenInFlight().check(record("mixed-batches", fault="pinned-buffer-overwritten"))

    assert {each.evidence["buffer"]: each.evidence["took the new contents"] for each in found} == {
        "pinned cu_seqlens_q": 0,
        "pinned input_ids": 0,
        "pinned positions": 0,
        "pinned slot_mapping": 44,
        "pinned block_tables": 45,
    }


def test_it_is_found_too_where_the_copies_happened_to_drain_in_time(record: Record) -> None:
    few = {"requests": "24", "max_tokens": "32", "budget": "1024"}
    found = OverwrittenInFlight().check(
        record("mixed-batches", fault="pinned-buffer-overwritten", **few)
    )

    assert len(found) == 5
    assert {each.evidence["took the new contents"] for each in found} == {0}


@looped("fault", [None, "decode-overwrites-shared-view", "lengths-not-rebased"])
def test_a_host_that_waits_for_its_copies_is_clean(record: Record, fault: str | None) -> None:
    few = {"requests": "24", "max_tokens": "32"}

    assert OverwrittenInFlight().check(record("mixed-batches", fault=fault, **few)) == []
