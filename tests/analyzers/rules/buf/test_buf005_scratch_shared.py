"""BUF005: lifetimes of two sequences' scratch overlap."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.buf.buf005_scratch_shared import ScratchShared
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import access
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import row
from tests.looped import looped
from tests.traces import trace_of

BATCH = [row(1, "a", row=0), row(1, "b", row=1)]
WRITTEN = [
    access("compute", "write", 10, "scratch", segment=0, epoch=1),
    access("compute", "write", 10, "scratch", segment=1, epoch=2),
]
READ = access("compute", "read", 10, "scratch", segment=0, epoch=2)


def shared(*rows: Row) -> list[Finding]:
    return ScratchShared().check(trace_of(accesses=rows, batch_rows=BATCH))


def test_scratch_that_was_overwritten_before_it_was_read_is_found() -> None:
    (found,) = shared(*WRITTEN, READ)

    assert found.message == (
        "scratch was shared: 1 read found what another sequence had written since, first row 0 for "
        "a in step 1, overwritten for b"
    )


@looped(
    "read",
    [
        pytest.param({"segment": 1}, id="its own"),
        pytest.param({"epoch": 1}, id="its own, before the next one wrote"),
        pytest.param({"stream": "host"}, id="a result that is handed over"),
        pytest.param({"segment": 2}, id="what it never wrote"),
        pytest.param({"first": 8, "last": 16}, id="another place"),
    ],
)
def test_other_reads_are_clean(read: Row) -> None:
    assert shared(*WRITTEN, READ | read) == []


def test_one_row_of_scratch_for_all_is_found_on_both_ranks(record: Record) -> None:
    head, worker = ScratchShared().check(record("ep-multiplexing", fault="scratch-shared"))

    assert (head.rank, head.count, head.request) == (0, 45, "req-00")
    assert (worker.rank, worker.count, worker.request) == (1, 45, None)


def test_a_row_of_scratch_for_each_is_clean(record: Record) -> None:
    assert ScratchShared().check(record("ep-multiplexing", max_tokens="5")) == []
