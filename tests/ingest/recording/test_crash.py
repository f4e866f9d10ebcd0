"""What is left when the engine is killed or interrupted, or its disk is full."""

from __future__ import annotations

import mmap
import struct
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepscope.ingest.recording.forms.rows import row_struct, stored
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.ingest.recording.conftest import Script
from tests.tiers import sampled

# Counts the rows that have been recorded in a shared file, which outlives it too.
ENGINE = """
import mmap, struct, sys
from stepscope.ingest.recorder import Recorder

path, counter = sys.argv[1:3]
with open(counter, "r+b") as file:
    shared = mmap.mmap(file.fileno(), 8)
rec = Recorder(path, producer="engine")
print("ready", flush=True)
for row in range(10_000_000):
    rec.lifecycle(step=row, ts_ns=row, request=f"request {row}", event="arrive", num_generated=row)
    struct.pack_into("<q", shared, 0, row + 1)
"""


ROW_BYTES = row_struct(stored(BY_NAME["lifecycle"], BY_NAME["lifecycle"].given)).size
"""Of the row that is written when the engine is killed, what is there of it is discarded."""


def wait_for(counter: mmap.mmap, rows: int) -> None:
    deadline = time.monotonic() + 180
    while struct.unpack_from("<q", counter)[0] < rows:
        assert time.monotonic() < deadline, "the engine records no more"
        time.sleep(0.0005)


def assert_rows_are_whole(trace: Trace, at_least: int) -> int:
    rows = trace.lifecycle.sort("ts_ns").collect()
    assert rows["ts_ns"].to_list() == list(range(len(rows)))
    assert rows["num_generated"].equals(rows["ts_ns"].alias("num_generated"))
    assert rows["request"].to_list() == [f"request {row}" for row in range(len(rows))]
    assert at_least <= len(rows) <= at_least + 1
    return len(rows)


@pytest.mark.parametrize("kill_after", sampled([1, 90, 400, 1_000, 5_000, 20_000], [1, 400, 5_000]))
def test_sigkill_loses_no_row_written_before_it(
    tmp_path: Path, script: Script, kill_after: int
) -> None:
    counter = tmp_path / "counter"
    counter.write_bytes(bytes(8))
    with counter.open("r+b") as file:
        shared = mmap.mmap(file.fileno(), 8)
    engine = script(ENGINE, tmp_path / "run.trace", counter)

    wait_for(shared, kill_after)
    engine.kill()
    engine.communicate()
    written = struct.unpack_from("<q", shared)[0]

    # Opened at once, while the process beside it may still compact, and again.
    trace = Trace.open(tmp_path / "run.trace")
    found = assert_rows_are_whole(trace, written)
    assert trace.manifest.closed is False
    assert trace.manifest.tables == {"lifecycle": "partial"}
    assert trace.manifest.recovered is not None
    assert trace.manifest.recovered["0"]["discarded_bytes"] <= ROW_BYTES
    time.sleep(0.2)
    assert_rows_are_whole(Trace.open(tmp_path / "run.trace"), found)


def test_a_file_size_limit_stops_the_recording_and_not_the_engine(
    tmp_path: Path, script: Script
) -> None:
    engine = script(
        """
        import resource, sys
        from stepscope.ingest.recording import segments
        from stepscope.ingest.recorder import Recorder
        segments.LARGEST_BYTES = 1 << 20
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        with Recorder(sys.argv[1], producer="engine") as rec:
            for row in range(3_000):
                rec.counters(ts_ns=row, name="waiting", value=float(row))
        print(rec.dropped["counters"], rec.failed)
        """,
        tmp_path / "run.trace",
    )

    said, trouble = engine.communicate()

    assert engine.returncode == 0
    assert_told(trouble, tmp_path / "run.trace", "File too large")
    assert_stopped(tmp_path / "run.trace", said.decode(), 3_000, "File too large")


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_stops_the_recording_and_not_the_engine(
    full_disk: Path, script: Script
) -> None:
    engine = script(
        """
        import sys
        from stepscope.ingest.recorder import Recorder
        with Recorder(sys.argv[1], producer="engine") as rec:
            for row in range(30_000):
                rec.counters(ts_ns=row, name=f"waiting {row % 9}", value=float(row))
        print(rec.dropped["counters"], rec.failed)
        """,
        full_disk / "run.trace",
    )

    said, trouble = engine.communicate()

    assert engine.returncode == 0
    assert_told(trouble, full_disk / "run.trace", "No space left on device")
    assert_stopped(full_disk / "run.trace", said.decode(), 30_000, "No space left on device")


def test_a_full_disk_stops_batches_and_columns_and_not_the_engine(
    full_disk: Path, script: Script
) -> None:
    engine = script(
        """
        import sys
        from stepscope.ingest.recorder import Recorder
        from stepscope.ingest.recording.lasting import BatchRow
        with Recorder(sys.argv[1], producer="engine") as rec:
            begin, complete = rec.in_two("steps", ("step", "ts_ns", "kind"), ("dur_ns",))
            put, batches = rec.bulk("counters", "ts_ns", "name", "value"), rec.batches()
            batches.whole(0, 0, [BatchRow("a", "prefill", 4, 0, 0)])
            for step in range(1, 9_000):
                opened = begin(step, step, "decode")
                batch = batches.formed(step, step, [f"request {step - 1}"],
                                       [BatchRow(f"request {step}", "decode", 1, 9, 0)])
                batches.outputs(batch, step)
                put([step, step], f"waiting {step}", [1.0, 2.0])
                complete(opened, 7)
        print(rec.failed)
        """,
        full_disk / "run.trace",
    )

    said, trouble = engine.communicate()

    assert engine.returncode == 0
    assert_told(trouble, full_disk / "run.trace", "No space left on device")
    assert b"No space left on device" in said
    trace = Trace.open(full_disk / "run.trace")
    rows = trace.batch_rows.sort("ts_ns", "row").select("step", "row", "request").collect().rows()
    told = [(n, row, each) for n in range(9_000) for row, each in enumerate(("a", f"request {n}"))]
    assert rows == [told[0], *told[2:]][: len(rows)]
    ts = trace.counters.collect()["ts_ns"].to_list()
    assert ts == [step for step in range(1, len(ts) // 2 + 1) for _ in "ab"]
    assert 2 < len(rows) < 18_000


def assert_told(log: bytes, path: Path, why: str) -> None:
    """The log says once that no more is recorded, where, why, and what to do."""
    (line,) = log.decode().splitlines()
    assert line.startswith(f"stepscope stopped recording into {path}")
    assert f"({why})" in line
    assert "make room there" in line


def assert_stopped(path: Path, said: str, given: int, why: str) -> None:
    dropped, _, failed = said.strip().partition(" ")
    assert why in failed
    trace = Trace.open(path)
    values = trace.counters.sort("ts_ns").collect()["value"].to_list()
    assert values == [float(row) for row in range(len(values))]
    assert len(values) + int(dropped) == given
    assert 0 < len(values) < given
    assert trace.manifest.dropped == {"counters": int(dropped)}
    assert trace.manifest.tables == {"counters": "partial"}
    assert why in repr(trace)


def test_a_disk_that_is_full_from_the_start_is_said_in_one_line(
    full_disk: Path, script: Script
) -> None:
    (full_disk / "ballast").write_bytes(bytes(256 << 10))
    engine = script(
        """
        import sys
        from stepscope.ingest.errors import RecordingError
        from stepscope.ingest.recorder import Recorder
        try:
            Recorder(sys.argv[1], producer="engine")
        except RecordingError as error:
            print(error)
        """,
        full_disk / "run.trace",
    )

    said, trouble = engine.communicate()

    assert (engine.returncode, trouble) == (0, b"")
    assert b"cannot be recorded into: No space left on device" in said


def test_ctrl_c_in_the_engine_leaves_a_closed_trace(tmp_path: Path, script: Script) -> None:
    engine = script(
        """
        import os, signal, sys
        from stepscope.ingest.recorder import Recorder
        try:
            with Recorder(sys.argv[1], producer="engine") as rec:
                for row in range(10_000):
                    rec.steps(step=row, ts_ns=row, kind="decode")
                    if row == 5_000:
                        os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            print("interrupted")
        """,
        tmp_path / "run.trace",
    )

    assert engine.communicate() == (b"interrupted\n", b"")

    trace = Trace.open(tmp_path / "run.trace")
    assert trace.manifest.closed
    assert trace.steps.collect()["step"].to_list() == list(range(5_001))
