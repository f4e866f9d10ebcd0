"""`stepscope close`: what it says, and with which exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stepscope.ingest.recorder import Recorder
from tests.app.cli.conftest import Command

KILLED = (
    "import os, sys; from stepscope.ingest.recorder import Recorder; "
    "r = Recorder(sys.argv[1], producer='engine'); "
    "r.steps(step=1, ts_ns=0, kind='decode'); os.kill(os.getpid(), 9)"
)


def killed(path: Path) -> Path:
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    return path


def test_it_says_how_many_rows_were_recovered_and_then_that_nothing_is_left(
    tmp_path: Path, stepscope: Command
) -> None:
    trace = killed(tmp_path / "run.trace")

    first, second = stepscope("close", trace), stepscope("close", trace)

    assert (first.code, first.out) == (0, f"{trace}: rank 0: 1 row recovered\n")
    assert (second.code, second.out) == (0, f"{trace}: nothing to close\n")
    found = stepscope("check", trace, "--select", "TRC001", "--fail-on", "never").out
    assert "was not closed: 1 row recovered" in found


def test_what_is_still_recorded_is_refused_in_one_line(tmp_path: Path, stepscope: Command) -> None:
    with Recorder(tmp_path / "run.trace", producer="engine"):
        run = stepscope("close", tmp_path / "run.trace")

    assert run.code == 2
    assert run.err == (
        f"stepscope: {tmp_path / 'run.trace'}: rank 0 is still being recorded; "
        "stop the engine first\n"
    )


def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path, stepscope: Command) -> None:
    run = stepscope("close", tmp_path)

    assert run.code == 3
    assert run.err == (f"stepscope: {tmp_path}: it is not a recording; name a .trace directory\n")
