"""BUF004: a row is sampled for one sequence after another wrote it."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.buf.buf004_row_overwritten import RowOverwritten
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import access
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import row, segment
from tests.looped import looped
from tests.traces import trace_of

BATCH = [row(1, "a", row=0), row(1, "b", row=1)]
WRITTEN = [
    access("compute", "write", 10, "logits", segment=0, epoch=1),
    access("compute", "write", 20, "logits", segment=1, epoch=2),
]
SAMPLED = access("host", "read", 30, "logits", segment=0, epoch=2)


def overwritten(*rows: Row, segments: list[Row] | None = None) -> list[Finding]:
    trace = trace_of(accesses=rows, batch_rows=BATCH, segments=segments or [])
    return RowOverwritten().check(trace)


def test_a_row_that_holds_another_ones_logits_is_found() -> None:
    (found,) = overwritten(*WRITTEN, SAMPLED)

    assert found.message == (
        "logits was read 1 time for a sequence after another one had written it: first row 0 for a "
        "in step 1, which held what was computed for b"
    )
    assert (found.request, found.evidence["epoch of its own"]) == ("a", 1)


def test_the_row_of_somebody_else_is_found_where_its_own_was_never_written() -> None:
    assert len(overwritten(WRITTEN[1], SAMPLED)) == 1


@looped(
    "read",
    [
        pytest.param({"segment": 1}, id="its own"),
        pytest.param({"epoch": 1}, id="its own, in time"),
        pytest.param({"segment": 1, "epoch": 1}, id="older contents: it came too early"),
        pytest.param({"stream": "compute"}, id="scratch, which one stream writes and reads"),
        pytest.param({"buffer": "host-logits"}, id="another buffer"),
    ],
)
def test_other_reads_are_clean(read: Row) -> None:
    assert overwritten(*WRITTEN, SAMPLED | read) == []


def test_parts_of_a_split_batch_are_none_of_its_business() -> None:
    assert overwritten(*WRITTEN, SAMPLED, segments=[segment(1, 0, 9)]) == []


def test_a_batch_whose_every_row_samples_row_0_is_found(record: Record) -> None:
    (found,) = RowOverwritten().check(
        record("ep-multiplexing", "v2-device-staging", "every-row-samples-row-0")
    )

    assert (found.count, found.request, found.evidence["written for"]) == (45, "req-01", "req-00")


@looped("variant", ["after", "v2-host-staging", "v2-device-staging"])
def test_rows_of_their_own_are_clean(record: Record, variant: str) -> None:
    assert RowOverwritten().check(record("ep-multiplexing", variant, max_tokens="5")) == []
