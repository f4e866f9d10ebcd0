"""A recording is read while it grows: each row once, whatever becomes of its files meanwhile."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from stepscope.ingest.live.growing_trace import GrowingTrace, Recorded, RecordingState, is_recording
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.compaction import compact_segment
from stepscope.ingest.recording.lasting import BatchRow
from stepscope.ingest.recording.segments import HEADER_BYTES
from stepscope.ingest.trace import Trace
from tests.tiers import slow

MANY = 30_000


class Seen:
    """What was told of by and by."""

    def __init__(self) -> None:
        self.rows: dict[str, list[pl.DataFrame]] = {}
        self.skipped: Counter[str] = Counter()
        self.last: Recorded | None = None

    def take(self, source: GrowingTrace) -> Recorded:
        self.last = recorded = source.take()
        for name, frames in recorded.rows.items():
            self.rows.setdefault(name, []).extend(frames)
        self.skipped.update(recorded.skipped)
        return recorded

    def table(self, name: str) -> pl.DataFrame:
        return pl.concat(self.rows[name])


def record(rec: Recorder, first: int, last: int) -> None:
    for step in range(first, last):
        rec.steps(step=step, ts_ns=step, kind="decode")
        rec.lifecycle(step=step, ts_ns=step, request=f"req-{step}", event="arrive")


def compact_full(rec: Recorder) -> None:
    """Compact the segments that are full, as the process beside an engine does."""
    for table in ("steps", "lifecycle"):
        *full, _ = sorted((rec.path / "journal.rank=0").glob(f"{table}-*.seg"))
        full = [file for file in full if compact_segment(file)]
        assert full


def test_each_row_is_told_once_as_it_is_recorded(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        source, seen = GrowingTrace(rec.path), Seen()
        for first in range(0, MANY, 1000):
            record(rec, first, first + 1000)
            seen.take(source)
            assert seen.table("lifecycle").height == first + 1000
    seen.take(source)

    whole = Trace.open(rec.path)
    assert seen.table("lifecycle").equals(whole.lifecycle.collect())
    assert seen.table("steps").equals(whole.steps.collect())


@slow
def test_a_burst_is_told_whole(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        source, seen = GrowingTrace(rec.path), Seen()
        seen.take(source)
        record(rec, 0, 100_000)

        seen.take(source)

        assert seen.table("lifecycle")["request"].to_list() == [
            f"req-{at}" for at in range(100_000)
        ]


def test_a_row_that_is_completed_later_is_unfinished_until_then(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        begin, end = rec.in_two("steps", ["step", "ts_ns", "kind"], ["dur_ns"])
        source = GrowingTrace(rec.path)
        first = begin(1, 10, "decode")
        begin(2, 20, "decode")

        told = source.take()
        assert "steps" not in told.rows
        assert told.unfinished["steps"][0]["dur_ns"].to_list() == [None, None]

        end(first, 5)
        told = source.take()
        assert told.rows["steps"][0].select("step", "dur_ns").rows() == [(1, 5)]
        assert told.unfinished["steps"][0]["step"].to_list() == [2]


def test_columns_recorded_at_once_and_batches_that_go_on_are_told(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        source, seen = GrowingTrace(rec.path), Seen()
        outputs, batches = rec.bulk("outputs", "ts_ns", "request", "position"), rec.batches()
        batches.whole(1, 10, [BatchRow("a", "decode", 1, 8, 0), BatchRow("b", "decode", 1, 4, 0)])
        outputs(11, ["a", "b"], [0, 0])
        seen.take(source)
        batches.again(2, 20)
        outputs(21, ["a", "b"], [1, 1])
        seen.take(source)

    whole = Trace.open(rec.path)
    assert seen.table("batch_rows").equals(whole.batch_rows.collect())
    assert seen.table("outputs").equals(whole.outputs.collect())


def test_what_was_compacted_before_it_was_read_is_read_from_there(tmp_path: Path) -> None:
    rec = Recorder(tmp_path / "run.trace", producer="test")
    source, seen = GrowingTrace(rec.path), Seen()
    record(rec, 0, 60_000)
    compact_full(rec)

    seen.take(source)

    assert seen.table("lifecycle")["step"].sort().to_list() == [*range(60_000)]
    rec.close()


def test_what_is_compacted_while_it_is_half_read_is_told_once(tmp_path: Path) -> None:
    rec = Recorder(tmp_path / "run.trace", producer="test")
    source, seen = GrowingTrace(rec.path), Seen()
    record(rec, 0, 1000)
    seen.take(source)
    record(rec, 1000, 60_000)
    compact_full(rec)

    seen.take(source)

    assert seen.table("lifecycle")["step"].sort().to_list() == [*range(60_000)]
    assert not seen.skipped
    rec.close()


def test_of_more_than_can_be_caught_up_the_latest_is_read_and_the_rest_counted(
    tmp_path: Path,
) -> None:
    rec = Recorder(tmp_path / "run.trace", producer="test")
    source, seen = GrowingTrace(rec.path, most_caught_up=10), Seen()
    record(rec, 0, 60_000)
    compact_full(rec)

    told = seen.take(source)

    for name in ("lifecycle", "steps"):
        assert seen.skipped[name] + seen.table(name).height == 60_000
    assert seen.skipped["lifecycle"] > 0
    assert told.whole_since_ns is not None
    rec.close()


def test_the_state_is_that_of_the_recording(tmp_path: Path) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        record(rec, 0, 1)
        source = GrowingTrace(rec.path)
        assert is_recording(rec.path)
        assert source.take().state is RecordingState.RECORDING

    assert source.take().state is RecordingState.CLOSED
    assert not is_recording(rec.path)


def test_a_recording_that_stopped_says_why_and_what_was_dropped(tmp_path: Path) -> None:
    rec = Recorder(tmp_path / "run.trace", producer="test")
    record(rec, 0, 3)
    source = GrowingTrace(rec.path)
    rec._journal.drop("steps", 2, OSError(28, "No space left on device"))

    told = source.take()

    assert told.state is RecordingState.STOPPED
    assert told.reason == "recording stopped: No space left on device"
    assert told.dropped == {"steps": 2}
    rec.close()


def test_a_directory_that_is_deleted_is_gone(tmp_path: Path) -> None:
    rec = Recorder(tmp_path / "run.trace", producer="test")
    source = GrowingTrace(rec.path)
    shutil.rmtree(rec.path)

    assert source.take().state is RecordingState.GONE
    rec.close()


KILLED = """
import sys
from stepscope.ingest.recorder import Recorder
rec = Recorder(sys.argv[1], producer="test")
for step in range(1000):
    rec.steps(step=step, ts_ns=step, kind="decode")
print("recorded", flush=True)
sys.stdin.read()
"""


def killed(path: Path) -> None:
    """Let a process record a thousand steps, and kill it."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == "recorded\n"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_all_that_a_killed_process_wrote_is_told(tmp_path: Path) -> None:
    killed(tmp_path / "run.trace")
    source, seen = GrowingTrace(tmp_path / "run.trace"), Seen()

    told = seen.take(source)

    assert told.state is RecordingState.KILLED
    assert seen.table("steps").height == 1000


def test_a_torn_last_row_is_not_told(tmp_path: Path) -> None:
    killed(tmp_path / "run.trace")
    segment = next((tmp_path / "run.trace").glob("journal.rank=0/steps-*.seg"))
    raw = bytearray(segment.read_bytes())
    end = max(at for at, byte in enumerate(raw) if byte) + 1
    raw[end - 4 : end] = b"\xee\xee\xee\xee"  # the marker of the last row
    segment.write_bytes(raw)
    seen = Seen()

    told = seen.take(GrowingTrace(tmp_path / "run.trace"))

    assert seen.table("steps")["step"].to_list() == [*range(999)]
    assert told.state is RecordingState.KILLED


@pytest.mark.parametrize("junk", [b"", b"\xff" * HEADER_BYTES, b"stepseg1" + b"{" * 4000])
def test_a_damaged_segment_is_a_note(tmp_path: Path, junk: bytes) -> None:
    with Recorder(tmp_path / "run.trace", producer="test") as rec:
        (rec.path / "journal.rank=0" / "tasks-000000.seg").write_bytes(junk)
        record(rec, 0, 3)
        seen = Seen()

        told = seen.take(GrowingTrace(rec.path))

        assert seen.table("steps").height == 3
        assert len(told.notes) == (1 if junk else 0)
