"""A process that records while a front follows it: it does what it is told, a line at a time.

`python -m tests.app.both_fronts.recording_process PATH` is the process.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from stepscope.ingest.recorder import Recorder
from tests.conftest import ROOT

BLOCK = 5
HOSTILE = "req-[b]\x1b[31m<script>\u202e"
STEP_NS = 50_000_000
DONE = "done"


class RecordingProcess:
    """Tells the process what to record; what it was told is on record when a call returns."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def steps(self, number: int) -> None:
        """Record so many steps more."""
        self._do(f"steps {number}")

    def give_block_twice(self) -> None:
        """Record that a request claims a KV block that another one has, and that both let go."""
        self._do("twice")

    def arrive(self) -> None:
        """Record that a request with a hostile name arrives."""
        self._do("arrive")

    def close(self) -> None:
        """Close the recording, and end."""
        self._do("close")
        self._process.wait()

    def kill(self) -> None:
        """End it as nothing that it does can prevent."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _do(self, what: str) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == f"{DONE}\n"


@contextmanager
def recording(path: Path) -> Iterator[RecordingProcess]:
    """Let another process record at a path; it is on its way when this returns."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.app.both_fronts.recording_process", str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT,
    ) as process:  # fmt: skip
        assert process.stdout
        assert process.stdout.readline() == f"{DONE}\n"
        try:
            yield RecordingProcess(process)
        finally:
            process.kill()


def main() -> None:
    """Record what standard input says."""
    rec = Recorder(sys.argv[1], producer="test")
    began, step = rec.now_ns(), 0
    print(DONE, flush=True)  # noqa: T201 - it is what tells the test
    for line in sys.stdin:
        what, _, number = line.strip().partition(" ")
        for _ in range(int(number or 0)):
            step += 1
            ts_ns = began + step * STEP_NS
            rec.steps(step=step, ts_ns=ts_ns, kind="decode", dur_ns=STEP_NS, num_decode_reqs=1)
            rec.batch_rows(
                step=step, ts_ns=ts_ns, row=0, request="req-1", phase="decode", num_tokens=1
            )
        ts_ns = began + step * STEP_NS
        if what == "twice":
            for at, (op, owner) in enumerate(product(("claim", "release"), ("req-1", "req-2"))):
                rec.allocations(
                    step=step, ts_ns=ts_ns + at, resource="kv-block", id=BLOCK, op=op, owner=owner
                )
        if what == "arrive":
            rec.lifecycle(step=step, ts_ns=ts_ns, request=HOSTILE, event="arrive")
            rec.batch_rows(
                step=step, ts_ns=ts_ns, row=1, request=HOSTILE, phase="decode", num_tokens=1
            )
        if what == "close":
            rec.close()
        print(DONE, flush=True)  # noqa: T201 - the same
        if what == "close":
            return


if __name__ == "__main__":
    main()
