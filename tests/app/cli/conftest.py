"""The command line as a user meets it: arguments in, text and an exit code out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from stepscope.app.cli import main


@dataclass(frozen=True)
class Run:
    """What a command left behind."""

    code: int
    out: str
    err: str


Command = Callable[..., Run]


@pytest.fixture
def stepscope(capsys: pytest.CaptureFixture[str]) -> Command:
    """Run a command in this process and return what it printed."""

    def run(*arguments: object) -> Run:
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return Run(code, printed.out, printed.err)

    return run


@pytest.fixture(scope="session")
def starved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of `fcfs-preemption` with its faults on."""
    path = tmp_path_factory.mktemp("recorded") / "starved.trace"
    assert main(["record", "fcfs-preemption", "--variant", "before", "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of `fcfs-preemption` with its faults off."""
    path = tmp_path_factory.mktemp("recorded") / "repaired.trace"
    assert main(["record", "fcfs-preemption", "--variant", "after", "-o", str(path)]) == 0
    return path
