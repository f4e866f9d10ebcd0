"""A command that is forked from a process that is ready is what the console script would be."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.command_server import ready_commands
from tests.looped import looped
from tests.tiers import slow

CONSOLE = Path(sysconfig.get_path("scripts")) / "stepscope"


@pytest.fixture(scope="module")
def forked() -> Iterator[Path]:
    with ready_commands() as folder:
        yield folder / "stepscope"


def ran(line: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    cwd.mkdir(exist_ok=True)
    return subprocess.run(
        ["sh", "-c", line], cwd=cwd, env={**os.environ, **env},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


@slow
@looped(
    ("words", "code"),
    [
        ("--version", 0),
        ("explain COR001", 0),
        ("record slot-recycling --set slots=2 -o here.trace", 0),
        ("record mix-admission --fault lost-ring-advance", 0),
        ("record no-such-scenario", 2),
        ("check absent.trace", 3),
    ],
)
def test_a_forked_command_prints_writes_and_returns_what_the_console_script_does(
    forked: Path, tmp_path: Path, words: str, code: int
) -> None:
    told = []
    for command in (forked, CONSOLE):
        folder = tmp_path / command.parent.name
        done = ran(f"{command} {words}", folder)
        written = sorted(path.name for path in folder.rglob("*"))
        told.append((done.returncode, done.stdout, done.stderr, written))

    assert told[0] == told[1]
    assert told[0][0] == code


def test_a_forked_command_has_the_environment_that_it_was_given(
    forked: Path, tmp_path: Path
) -> None:
    here = ran(f"{forked} cache", tmp_path, STEPSCOPE_CACHE=str(tmp_path / "here"))
    there = ran(f"{forked} cache", tmp_path, STEPSCOPE_CACHE=str(tmp_path / "there"))

    assert "here" in here.stdout
    assert "there" in there.stdout


def test_a_forked_command_leaves_nothing_to_the_next(forked: Path, tmp_path: Path) -> None:
    one = ran(f"{forked} record slot-recycling -o run.trace", tmp_path / "one")
    other = ran(f"{forked} record slot-recycling -o run.trace", tmp_path / "other")

    assert (one.returncode, one.stdout) == (other.returncode, other.stdout)


def test_a_pipe_ends_for_its_reader_when_the_forked_command_does(
    forked: Path, tmp_path: Path
) -> None:
    piped = ran(f"{forked} rules | cat | {forked} --version | cat", tmp_path)

    assert piped.stdout.startswith("stepscope ")


@slow
def test_no_command_outlives_the_server(tmp_path: Path) -> None:
    with ready_commands() as folder:
        ran(f"{folder}/stepscope record slot-recycling -o run.trace", tmp_path)
        serving = subprocess.Popen(
            [folder / "stepscope", "web", "run.trace", "--port", "0"], cwd=tmp_path,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert serving.stdout is not None
        assert "http" in serving.stdout.readline()

    told, _ = serving.communicate(timeout=180)  # ends when nobody holds the pipe any more

    assert "the server of commands has gone" in told
    assert serving.returncode == 1
