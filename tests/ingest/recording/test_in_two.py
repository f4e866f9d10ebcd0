"""Rows that are completed later: on record at once, and whole when what was missing is known."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import ConfigError
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.compaction import compact_segment
from stepscope.ingest.trace import Trace

FIRST, LATER = ("step", "ts_ns", "kind", "tag"), ("dur_ns", "executed_path", "num_running")


def steps(trace: Path, *columns: str) -> list[tuple[Any, ...]]:
    return Trace.open(trace).steps.sort("ts_ns").select(columns).collect().rows()


def test_a_row_is_on_record_before_it_is_completed_and_whole_after(
    rec: Recorder, tmp_path: Path
) -> None:
    begin, complete = rec.in_two("steps", FIRST, LATER)
    first, second = begin(1, 10, "decode", "a"), begin(step=2, ts_ns=20, kind="mixed")
    shutil.copytree(rec.path, tmp_path / "killed.trace")
    complete(second, 7, "graph", 64)
    complete(first, dur_ns=5)
    begin(3, 30, "decode")

    rec.close()

    assert steps(tmp_path / "killed.trace", "step", "tag", *LATER) == [
        (1, "a", None, None, None), (2, None, None, None, None),
    ]  # fmt: skip
    assert steps(rec.path, "step", "tag", *LATER) == [
        (1, "a", 5, None, None), (2, None, 7, "graph", 64), (3, None, None, None, None),
    ]  # fmt: skip
    assert rec.dropped == {}


@pytest.mark.parametrize("bad", ["soon", 1 << 70, object()])
def test_a_bad_value_that_completes_a_row_is_counted_and_the_row_stays(
    rec: Recorder, bad: object
) -> None:
    begin, complete = rec.in_two("steps", FIRST, LATER)
    complete(begin(1, 10, "decode"), bad)
    complete(begin("one", 10, "decode"), 4)
    complete(begin(2, 20, "decode"), 4)

    rec.close()

    assert steps(rec.path, "step", "dur_ns") == [(1, None), (2, 4)]
    assert rec.dropped == {"steps": 2}


def test_a_row_that_is_torn_while_it_is_completed_is_there_without_what_came_later(
    rec: Recorder, tmp_path: Path
) -> None:
    begin, complete = rec.in_two("steps", ("step", "ts_ns", "kind"), ("dur_ns",))
    complete(begin(1, 10, "decode"), 0x1122334455)
    trace = Path(shutil.copytree(rec.path, tmp_path / "killed.trace"))
    file = trace / "journal.rank=0" / "steps-000000.seg"
    raw = bytearray(file.read_bytes())
    at = raw.index((0x1122334455).to_bytes(8, "little"))
    raw[at + 3 : at + 12] = bytes(9)
    file.write_bytes(raw)

    assert steps(trace, "step", "dur_ns") == [(1, None)]


@pytest.mark.usefixtures("small_segments", "no_compactor")
def test_a_full_segment_waits_until_its_rows_are_completed(rec: Recorder) -> None:
    begin, complete = rec.in_two("steps", FIRST, LATER)
    opened = [begin(step, step, "decode", f"tag {step}") for step in range(500)]
    full = sorted(rec.path.glob("journal.rank=0/steps-*.seg"))
    assert len(full) > 3

    assert not compact_segment(full[0])
    for step, each in enumerate(opened):
        complete(each, step, "graph")
    assert compact_segment(full[0])
    rec.close()

    assert steps(rec.path, "step", "dur_ns", "tag") == [
        (step, step, f"tag {step}") for step in range(500)
    ]


def test_after_the_close_nothing_is_completed_and_that_is_counted(rec: Recorder) -> None:
    begin, complete = rec.in_two("steps", FIRST, LATER)
    opened = begin(1, 10, "decode")
    rec.close()

    complete(opened, 5)
    complete(begin(2, 20, "decode"), 5)

    assert steps(rec.path, "step", "dur_ns") == [(1, None)]
    assert rec.dropped == {"steps": 2}


@pytest.mark.parametrize(
    ("first", "later", "why"),
    [
        (("step", "ts_ns", "kind"), (), "one other column later"),
        (("step", "ts_ns"), ("kind",), "one other column later"),
        (("step", "ts_ns", "kind", "tag"), ("tag",), "'tag' is named twice"),
        (("step", "ts_ns", "kind"), ("mood",), "there is no column 'mood'"),
    ],
)
def test_what_cannot_be_told_in_two_is_refused(
    rec: Recorder, first: tuple[str, ...], later: tuple[str, ...], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        rec.in_two("steps", first, later)
