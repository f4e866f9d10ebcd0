"""BUF002: a segment reads an epoch that another segment wrote."""

from __future__ import annotations

import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.buf.buf002_shared_view_clobbered import SharedViewClobbered
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import access
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import segment
from tests.looped import looped
from tests.traces import trace_of

SPLIT = [segment(1, 0, 90), segment(1, 1, 10)]
WRITTEN = [
    access("copy", "write", 10, segment=0, epoch=1), access("copy", "write", 20, segment=1, epoch=2)
]  # fmt: skip


def clobbered(*rows: Row, segments: list[Row] | None = None) -> list[Finding]:
    trace = trace_of(accesses=rows, segments=SPLIT if segments is None else segments)
    return SharedViewClobbered().check(trace)


def test_a_segment_that_finds_what_the_other_wrote_is_found() -> None:
    (found,) = clobbered(*WRITTEN, access("compute", "read", 30, segment=0, epoch=2))

    assert found.message == (
        "prefill segments read b 1 time as another segment had left it: first segment 0 in step 1, "
        "which found what segment 1 had written"
    )
    assert (found.ts_ns, found.evidence["epoch of its own"]) == (30, 1)


@looped(
    "read",
    [
        pytest.param({"segment": 1, "epoch": 2}, id="its own"),
        pytest.param({"segment": 0, "epoch": 1}, id="its own, before the other's"),
        pytest.param({"segment": 0, "epoch": 9}, id="nobody's of this step"),
        pytest.param({"segment": 0, "epoch": 2, "buffer": "c"}, id="another buffer"),
        pytest.param({"segment": 0, "epoch": 2, "step": 2}, id="another step's"),
        pytest.param({"segment": None, "epoch": 2}, id="of no segment"),
        pytest.param({"segment": 0, "epoch": 2, "op": "copy"}, id="a copy, see BUF001"),
    ],
)
def test_other_reads_are_clean(read: Row) -> None:
    assert clobbered(*WRITTEN, access("compute", "read", 30) | read) == []


def test_rows_of_a_batch_that_is_not_split_are_none_of_its_business() -> None:
    read = access("compute", "read", 30, segment=0, epoch=2)

    assert clobbered(*WRITTEN, read, segments=[segment(2, 0, 90)]) == []


def test_a_decode_half_that_overwrites_the_shared_view_is_found(record: Record) -> None:
    found = SharedViewClobbered().check(
        record("mixed-batches", fault="decode-overwrites-shared-view")
    )

    buffers = {each.evidence["buffer"] for each in found}
    fields = ("cu_seqlens_q", "input_ids", "positions", "slot_mapping", "block_tables")
    assert buffers == {f"shared {name}" for name in fields}
    assert {each.count for each in found} == {46}


@looped("fault", [None, "pinned-buffer-overwritten"])
def test_segments_with_fields_of_their_own_are_clean(record: Record, fault: str | None) -> None:
    few = {"requests": "24", "max_tokens": "32"}

    assert SharedViewClobbered().check(record("mixed-batches", fault=fault, **few)) == []
