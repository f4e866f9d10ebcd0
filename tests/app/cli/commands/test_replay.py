from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stepscope import Recorder
from stepscope.app.cli.main import cli, main
from stepscope.app.replay import launch
from stepscope.ingest.replay.script import Script
from tests.analyzers.replay.small_scheduler import recorded, run_small

PATIENCE_S = 180
"""A machine may be busy with other things; nothing here waits this long."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(script: Script, _python: str, out: Path, *_: object) -> dict[str, Any]:
        return run_small(script, out)

    monkeypatch.setattr(launch, "run", run)


@pytest.mark.usefixtures("small")
def test_the_same_decisions_are_said_in_one_line_and_exit_0(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    done = CliRunner().invoke(cli, ["replay", str(trace)])

    assert done.exit_code == 0, done.output
    assert "the same decisions at every step: " in done.output


@pytest.mark.usefixtures("small")
def test_check_demands_of_a_real_scheduler_what_a_plain_replay_finds(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    plain, checked = (
        CliRunner().invoke(cli, ["replay", str(trace), *words]) for words in ([], ["--check"])
    )

    assert (checked.exit_code, checked.output) == (0, plain.output)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--set", "max_num_seqs=1"), "--check compares an unchanged run"),
        (("--engine", "sglang"), "--engine names another one"),
        (("--engine", "stepscope"), "--engine names another one"),
    ],
)
def test_check_is_refused_of_what_is_not_the_recorded_run(
    words: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")

    assert main(["replay", str(trace), "--check", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_divergence_is_said_with_both_sides_costs_and_times_and_exits_4(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    done = CliRunner().invoke(
        cli, ["replay", str(trace), "--set", "max_num_seqs=1", "-o", str(tmp_path / "b.trace")]
    )

    assert done.exit_code == 4, done.output
    assert "with max_num_seqs 1" in done.output
    assert "first divergence: step " in done.output
    assert "percentile" in done.output
    assert "TTFT mean" in done.output
    assert (tmp_path / "b.trace").is_dir()


@pytest.mark.usefixtures("small")
def test_a_program_gets_json(tmp_path: Path) -> None:
    trace = recorded(tmp_path / "a.trace")

    done = CliRunner().invoke(cli, ["replay", str(trace), "--format", "json"])

    assert json.loads(done.stdout)["is_same"] is True


def test_an_environment_without_vllm_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")

    code = main(["replay", str(trace), "--python", sys.executable])

    assert code == 6
    told = capsys.readouterr().err
    assert "there is no module 'vllm'" in told
    assert "--python ENV" in told


def test_an_environment_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")

    assert main(["replay", str(trace), "--python", str(tmp_path / "nowhere")]) == 2
    assert "no Python was found" in capsys.readouterr().err


def test_what_ends_without_a_result_is_told_with_its_last_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho too old >&2\nexit 1\n")
    program.chmod(0o755)

    assert main(["replay", str(trace), "--python", str(program)]) == 6
    assert "too old" in capsys.readouterr().err


def test_an_engine_that_says_nothing_is_ended_with_all_that_it_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class OnceStarted(threading.Timer):
        """A timer that is over as soon as the program has told what it started."""

        def run(self) -> None:
            wait_until((tmp_path / "pid").exists)
            self.function(*self.args, **self.kwargs)

    monkeypatch.setattr("stepscope.app.replay.other_process.threading.Timer", OnceStarted)
    trace = recorded(tmp_path / "a.trace")
    program = tmp_path / "python"
    pid = tmp_path / "pid"
    program.write_text(f"#!/bin/sh\nsleep 600 &\necho $! > {pid}.tmp\nmv {pid}.tmp {pid}\nwait\n")
    program.chmod(0o755)

    assert main(["replay", str(trace), "--python", str(program), "--timeout", "5"]) == 6

    told = capsys.readouterr().err
    assert "it said nothing for 5 s and was ended" in told
    assert told.count("\n") == 1
    started = int(pid.read_text())
    wait_until(lambda: has_ended(started))  # it is killed, and dies when it is its turn


def wait_until(is_so: Callable[[], bool]) -> None:
    last_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < last_s
        time.sleep(0.01)


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or dead and not yet asked for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("file", ["text", "nowhere/folder"])
def test_what_is_no_python_is_wrong_usage(
    file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")
    (tmp_path / "text").write_text("no program\n")

    assert main(["replay", str(trace), "--python", str(tmp_path / file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_an_out_that_cannot_be_written_is_told_before_the_engine_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")
    (tmp_path / "file").touch()

    assert main(["replay", str(trace), "-o", str(tmp_path / "file/b.trace")]) == 2
    assert capsys.readouterr().err == f"stepscope: {tmp_path}/file/b.trace: Not a directory\n"


@pytest.mark.usefixtures("small")
def test_one_rank_of_two_is_replayed_and_one_that_is_not_there_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = recorded(tmp_path / "a.trace")
    recorded(trace, 5, rank=1)

    done = CliRunner().invoke(cli, ["replay", str(trace), "--rank", "1", "--format", "json"])

    assert [each["rank"] for each in json.loads(done.stdout)["ranks"]] == [1]
    assert done.exit_code == 0
    assert main(["replay", str(trace), "--rank", "7"]) == 2
    assert "no request arrives at rank 7; its ranks are 0, 1" in capsys.readouterr().err


def test_a_run_of_another_engine_is_told_what_no_scheduler_of_vllm_can_do_without(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "a.trace"
    with Recorder(trace, producer="my-engine") as recorder:
        recorder.lifecycle(ts_ns=1, request="r", event="arrive", prompt_len=5, max_tokens=5)

    assert main(["replay", str(trace)]) == 2
    assert "it was written by my-engine, and tells of no vLLM scheduler" in capsys.readouterr().err
