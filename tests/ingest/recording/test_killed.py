"""Steps, batches, outputs and decisions of an engine that is killed at any moment."""

from __future__ import annotations

import mmap
import random
import struct
import subprocess
import time
from pathlib import Path

import pytest

from stepscope.ingest.recording.closing import close_recording
from stepscope.ingest.trace import Trace
from tests.ingest.recording.conftest import Script

# Counts the calls that have returned in a shared file, which outlives it. One request in seven
# steps leaves, and another comes; two steps are open at once.
ENGINE = """
import mmap, struct, sys
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.recording.lasting import BatchRow

path, counter, limit = sys.argv[1:4]
with open(counter, "r+b") as file:
    shared = mmap.mmap(file.fileno(), 8)
calls = 0
def called():
    global calls
    calls += 1
    struct.pack_into("<q", shared, 0, calls)

rec = Recorder(path, producer="engine")
begin, complete = rec.in_two("steps", ("step", "ts_ns", "kind"), ("dur_ns",))
put = rec.bulk("decisions", "step", "ts_ns", "subject_kind", "subject", "verdict")
batches = rec.batches()
opened = []
for step in range(int(limit)):
    opened.append(begin(step, 10 * step, "decode"))
    called()
    new = BatchRow(f"request {step}", "prefill", 5, 0, 0)
    if step == 0:
        batch = batches.whole(step, 10 * step, [new])
    elif step % 7 == 0:
        left = [f"request {step - 56}"] if step >= 56 else []
        batch = batches.formed(step, 10 * step, left, [new])
    else:
        batch = batches.again(step, 10 * step)
    called()
    batches.outputs(batch, 10 * step + 5)
    called()
    put(step, 10 * step + 1, "request", [f"waiting {step % 3}", "late"], "passed-over")
    called()
    if len(opened) == 2:
        complete(opened.pop(0), step)
    called()
print(rec.dropped, rec.failed, flush=True)
sys.stdin.read()
"""
CALLS = 5


def assert_there(trace: Path, calls: int) -> None:
    """Hold the tables against what that many calls had told, and one more may have."""
    opened, done = Trace.open(trace), calls // CALLS
    rows = opened.batch_rows.sort("ts_ns", "row").collect()
    outputs = opened.outputs.sort("ts_ns", maintain_order=True).collect()
    decisions = opened.decisions.collect()
    steps = opened.steps.sort("ts_ns", maintain_order=True).collect()
    tables = {"steps": steps, "batch_rows": rows, "outputs": outputs, "decisions": decisions}
    num_steps = {name: 1 + max(rows["step"].to_list(), default=-1) for name, rows in tables.items()}
    for at, name in enumerate(num_steps):
        told = done + (calls % CALLS > at)
        assert told <= num_steps[name] <= told + 1
    batches = [in_batch(step) for step in range(num_steps["batch_rows"])]
    expected = [
        (step, f"request {first}", 5 + step - first - 1 if step > first else 0)
        for step, batch in enumerate(batches) for first in batch
    ]  # fmt: skip
    assert rows.select("step", "request", "num_computed").rows() == expected
    expected = [
        (step, f"request {first}", step - first)
        for step in range(num_steps["outputs"]) for first in in_batch(step)
    ]  # fmt: skip
    assert outputs.select("step", "request", "position").rows() == expected
    assert decisions["step"].to_list() == [s for s in range(num_steps["decisions"]) for _ in "ab"]
    assert steps["step"].to_list() == list(range(num_steps["steps"]))
    durations = steps["dur_ns"].to_list()
    completed = [step for step, dur_ns in enumerate(durations) if dur_ns is not None]
    assert completed == list(range(len(completed)))
    assert max(done - 1, 0) <= len(completed) <= done + 1
    assert durations[: len(completed)] == [step + 1 for step in completed]


def in_batch(step: int) -> list[int]:
    """The steps at which the requests came that are in the batch."""
    last = step // 7 * 7
    return [first for first in range(0, last + 1, 7) if first > last - 56 or step < 56]


def killed_after(tmp_path: Path, engine: subprocess.Popen[bytes], calls: int) -> int:
    with (tmp_path / "counter").open("r+b") as file:
        shared = mmap.mmap(file.fileno(), 8)
    deadline = time.monotonic() + 180
    while struct.unpack_from("<q", shared)[0] < calls:
        assert time.monotonic() < deadline, "the engine records no more"
        time.sleep(0.0005)
    engine.kill()
    engine.communicate()
    return int(struct.unpack_from("<q", shared)[0])


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_moment_of_a_sigkill_all_that_was_told_is_there(
    tmp_path: Path, script: Script, seed: int
) -> None:
    (tmp_path / "counter").write_bytes(bytes(8))
    engine = script(ENGINE, tmp_path / "run.trace", tmp_path / "counter", 1 << 40)
    calls = int(10 ** random.Random(seed).uniform(0, 4.3))

    calls = killed_after(tmp_path, engine, calls)

    # At once, while the process beside it may still compact; afterwards; and closed.
    assert_there(tmp_path / "run.trace", calls)
    time.sleep(0.2)
    assert_there(tmp_path / "run.trace", calls)
    deadline = time.monotonic() + 180
    while list((tmp_path / "run.trace").glob("journal*")) and time.monotonic() < deadline:
        close_recording(tmp_path / "run.trace")
    assert_there(tmp_path / "run.trace", calls)
    assert not list((tmp_path / "run.trace").glob("journal*"))
