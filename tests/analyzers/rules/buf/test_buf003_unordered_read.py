"""BUF003: a read on one stream of a write on another with no event between."""

from __future__ import annotations

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.buf.buf003_unordered_read import UnorderedRead
from tests.analyzers.conftest import Record
from tests.analyzers.rank_rows import access, ordered
from tests.analyzers.rows import Row, part
from tests.looped import looped
from tests.traces import trace_of

WRITE = access("compute", "write", 10, epoch=2)
READ = access("copy", "read", 30, epoch=1)


def raced(*rows: Row) -> list[Finding]:
    return UnorderedRead().check(trace_of(accesses=rows))


def test_a_read_that_does_not_wait_for_the_write_is_found() -> None:
    (found,) = raced(WRITE, READ)

    assert found.message == (
        "copy read b 1 time without waiting for compute, which writes it: first in step 1, 20 ns "
        "after the write was issued; 1 read found older contents"
    )


def test_it_is_a_race_also_where_the_right_contents_were_found() -> None:
    (found,) = raced(WRITE, READ | {"epoch": 2})

    assert found.evidence["found older contents"] == 0


@looped(
    "rows",
    [
        pytest.param([WRITE, *ordered("compute", "copy", 15), READ], id="it waited"),
        pytest.param([WRITE, READ | {"stream": "compute"}], id="one stream"),
        pytest.param([WRITE | {"stream": "host"}, READ], id="the host wrote, then issued the read"),
        pytest.param([READ | {"ts_ns": 5}, WRITE], id="a read before the write"),
    ],
)
def test_reads_in_order_are_clean(rows: list[Row]) -> None:
    assert raced(*rows) == []


def test_a_host_that_does_not_wait_for_the_device_is_found() -> None:
    assert len(raced(WRITE, READ | {"stream": "host"})) == 1


TILE = [
    WRITE | {"buffer": "tile of core 2", "stream": "core 0"},
    READ | {"buffer": "tile of core 2", "stream": "core 2"},
]


def test_a_core_that_reads_its_memory_is_no_stream_where_its_blocks_are_known() -> None:
    trace = trace_of(accesses=TILE, core_spans=[part(1, 2, 5, 40)])

    assert not UnorderedRead().applies(trace)
    assert UnorderedRead().check(trace) == []


def test_where_blocks_are_not_recorded_a_core_is_a_stream_like_any_other() -> None:
    assert len(raced(*TILE)) == 1


def test_an_overwritten_tile_is_told_once(record: Record) -> None:
    trace = record("mix-admission", fault="late-part-overwrites-tile", late_part="corrupts")

    assert {each.code for each in check(trace).findings} == {"COR001", "COR003", "COR013", "EQV001"}


def test_a_copy_to_the_host_on_another_stream_is_found(record: Record) -> None:
    pytest.importorskip("torch")
    (found,) = UnorderedRead().check(
        record("ep-multiplexing", "v2-host-staging", "copy-on-unordered-stream")
    )

    assert (found.count, found.evidence["found older contents"]) == (45, 45)
    assert (found.request, found.step, found.evidence["buffer"]) == ("req-00", 2, "logits")


@looped("variant", ["after", "v2-host-staging", "v2-device-staging"])
def test_streams_that_wait_for_each_other_are_clean(record: Record, variant: str) -> None:
    pytest.importorskip("torch")

    assert UnorderedRead().check(record("ep-multiplexing", variant, max_tokens="5")) == []
