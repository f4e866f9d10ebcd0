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


def test_one_that_is_still_recorded_keeps_none_of_the_others_open(
    tmp_path: Path, stepscope: Command
) -> None:
    first, last = killed(tmp_path / "a.trace"), killed(tmp_path / "c.trace")
    with Recorder(tmp_path / "b.trace", producer="engine"):
        run = stepscope("close", first, tmp_path / "b.trace", last)

    assert run.code == 2
    assert run.out == f"{first}: rank 0: 1 row recovered\n{last}: rank 0: 1 row recovered\n"
    assert run.err == (
        f"stepscope: {tmp_path / 'b.trace'}: rank 0 is still being recorded; "
        "stop the engine first\n"
    )


def test_of_several_that_cannot_be_closed_each_is_named(tmp_path: Path, stepscope: Command) -> None:
    with Recorder(tmp_path / "b.trace", producer="engine"):
        run = stepscope("close", tmp_path / "b.trace", tmp_path / "not-there.trace")

    assert run.code == 2
    assert [line.partition(": ")[2].partition(": ")[0] for line in run.err.splitlines()] == [
        str(tmp_path / "b.trace"), str(tmp_path / "not-there.trace"),
    ]  # fmt: skip


def test_a_folder_of_starts_is_all_recordings_in_it(tmp_path: Path, stepscope: Command) -> None:
    one, other = killed(tmp_path / "1.trace"), killed(tmp_path / "2 two.trace")
    (tmp_path / "notes").mkdir()

    run = stepscope("close", tmp_path)

    assert (run.code, run.err) == (0, "")
    assert run.out == f"{one}: rank 0: 1 row recovered\n{other}: rank 0: 1 row recovered\n"


def test_what_is_no_recording_is_refused_in_one_line(tmp_path: Path, stepscope: Command) -> None:
    run = stepscope("close", tmp_path)

    assert run.code == 3
    assert run.err == (f"stepscope: {tmp_path}: it is not a recording; name a .trace directory\n")
