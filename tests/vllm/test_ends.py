"""However vLLM ends, no step that was recorded is lost, and one command closes the recording."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stepscope.app.cli import main
from stepscope.app.debug.session import Session
from tests.vllm.judging import judges, state
from tests.vllm.running.serving import Server, serving
from tests.vllm.runs import Run
from tests.vllm.tiny_llama import words

Row = dict[str, Any]
ENDS: dict[str, Callable[[Server], None]] = {
    "kill the engine": lambda server: os.kill(server.engine_pids[0], signal.SIGKILL),
    "kill all": lambda server: os.killpg(server.started.pid, signal.SIGKILL),
    "SIGTERM": lambda server: server.started.send_signal(signal.SIGTERM),
    "SIGINT": lambda server: server.started.send_signal(signal.SIGINT),
}


@pytest.mark.parametrize("how", ENDS)
def test_no_recorded_step_is_lost_and_close_finishes_the_recording(
    how: str, model: Path, tmp_path: Path
) -> None:
    with serving(model, tmp_path) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.burst, _asked(12))
        _wait(lambda: server.num_steps > 200)
        engines = server.engine_pids
        ENDS[how](server)
        _wait(lambda: not any(_runs(pid) for pid in engines))
        # The server's front may wait for its clients for as long as they like.
        with suppress(ProcessLookupError):
            os.killpg(server.started.pid, signal.SIGKILL)

    run = Run(tmp_path)
    _assert_whole(run)
    folders = sorted((tmp_path / "traces").iterdir())
    assert main(["close", *map(str, folders)]) == 0
    _assert_whole(Run(tmp_path))


def test_a_hung_engine_is_dumped_by_a_signal_and_when_it_stalls(
    model: Path, tmp_path: Path
) -> None:
    env = {"STEPSCOPE_STALL_S": "2", "STEPSCOPE_TRUTH_HANG": "100"}
    with serving(model, tmp_path, env=env) as server, ThreadPoolExecutor(1) as pool:
        pool.submit(server.burst, _asked(4))
        _wait(lambda: server.num_steps >= 199)
        time.sleep(4)
        os.kill(server.engine_pids[0], signal.SIGUSR2)
        time.sleep(2)
        os.killpg(server.started.pid, signal.SIGKILL)
        server.started.wait(60)

    run = Run(tmp_path)
    dumps = [json.loads(args) for args in run.trace.spans.collect()["args"]]
    assert [dump["why"].partition(" ")[0] for dump in dumps] == ["no", "signal"]
    assert {each["request"] for dump in dumps for each in dump["running"]} == set(
        run.truth[0][-1]["running"]
    )
    (places,) = [
        held for name, held in dumps[0]["threads"].items() if name.startswith("MainThread")
    ]
    assert "_misbehave" in places[-1]
    _assert_whole(run)


def test_an_engine_that_dies_in_its_first_step_is_found(model: Path, tmp_path: Path) -> None:
    with serving(model, tmp_path, env={"STEPSCOPE_TRUTH_DIE": "1"}) as server:
        server.ask(1, words(40), 5)

    run = Run(tmp_path)
    assert run.trace.steps.collect().is_empty()
    found = judges.told_findings(run.trace)
    assert found, "nothing is said of an engine that died with a request open"
    assert any(line.startswith(("STV", "TRC")) for line in found)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own for the traces."""
    disk = tmp_path / "traces"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here: that takes root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk_ends_the_recording_and_not_the_engine(
    model: Path, tmp_path: Path, disk: Path
) -> None:
    env, rest = {"STEPSCOPE_TRUTH_FILE_BYTES": "16384"}, ("--shutdown-timeout", "20")
    with serving(model, tmp_path, *rest, env=env) as server, ThreadPoolExecutor(1) as pool:
        answers = pool.submit(server.burst, _asked(12))
        _wait(lambda: server.num_steps > 200)
        _fill(disk / "filler")
        told = answers.result()
        code = server.stop()
    (disk / "filler").unlink()

    assert code == 0
    assert [each["status"] for each in told] == [200] * 12
    ended = [reason for line in Run(tmp_path).truth[0] for reason in line.get("ended", {}).values()]
    assert ended == ["length"] * 12
    _assert_begins_whole(Run(tmp_path))
    assert main(["close", *map(str, sorted(disk.iterdir()))]) == 0
    _assert_begins_whole(Run(tmp_path))


def _fill(file: Path) -> None:
    """Write until there is no room left."""
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


def _assert_begins_whole(run: Run) -> None:
    """The trace ends early, and until then every step is there."""
    num_lines = sum(bool(line.get("batch")) for line in run.truth[0])
    steps = state.steps_of(Session(run.trace), run.truth[0])
    assert 90 < len(steps) < num_lines - 90
    assert state.differences(run.trace, run.truth[0]) == []


def _asked(num: int) -> list[Row]:
    return [
        {"number": number, "prompt": words(40, number), "max_tokens": 400} for number in range(num)
    ]


def _assert_whole(run: Run) -> None:
    """Every step of which the witness has a line is there, but one that was being written."""
    session = Session(run.trace)
    assert state.missing(session, run.truth[0]) <= 1
    assert state.differences(run.trace, run.truth[0]) == []


def _runs(pid: int) -> bool:
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())  # of a zombie, it is empty
    except OSError:
        return False


def _wait(until: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)
