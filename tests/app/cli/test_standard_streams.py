"""Standard streams that are closed, broken or full end no command otherwise than others do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.looped import looped
from tests.tiers import slow

SAMPLE = str(ROOT / "sample_traces" / "mix-admission-before.trace")
COUNT = ("sql", SAMPLE, "select count(*) from steps")
COMMANDS = {
    "sql": (COUNT, 0), "help": (("--help",), 0), "version": (("--version",), 0),
    "info": (("info", SAMPLE), 0), "findings": (("check", SAMPLE, "--fail-on", "warning"), 1),
    "wrong usage": (("sql", SAMPLE, "selec"), 2), "no command": (("chekc",), 2),
    "no trace": (("info", "absent.trace"), 3),
}  # fmt: skip
CLOSED = (">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-")


def through_shell(command: tuple[str, ...], streams: str) -> tuple[int, str]:
    """The exit code of a command under a shell's redirections, and what is on stderr."""
    script = f'exec "$@" {streams}'
    words = ["sh", "-c", script, "sh", sys.executable, "-m", "stepscope.app", *command]
    run = subprocess.run(words, capture_output=True, text=True, check=False, timeout=180)
    return run.returncode, run.stderr


@pytest.mark.parametrize(("command", "code"), COMMANDS.values(), ids=COMMANDS)
def test_a_command_with_closed_streams_has_the_exit_code_of_others(
    command: tuple[str, ...], code: int
) -> None:
    streams = CLOSED if command == COUNT else CLOSED[-1:]

    ends = [through_shell(command, each) for each in streams]

    assert [end for end, _ in ends] == [code] * len(streams)
    assert not any(message for _, message in ends)


@looped("streams", ["2>/dev/full", "2</dev/null"])
def test_messages_that_nobody_can_get_change_no_exit_code(streams: str) -> None:
    assert through_shell(("sql", SAMPLE, "selec"), streams) == (2, "")


@looped("form", ["table", "csv", "json"])
def test_a_stdout_that_takes_nothing_is_one_line(form: str) -> None:
    for streams in (">/dev/full", "1</dev/null"):
        code, message = through_shell((*COUNT, "--format", form), streams)

        assert (code, len(message.splitlines())) == (2, 1)
        assert "standard output" in message
        assert "bug" not in message


@slow
@looped("form", ["table", "csv", "json"])
def test_a_reader_of_messages_or_of_rows_that_goes_away_is_no_error(
    form: str, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "stepscope.app", "sql", SAMPLE]
    rows = [*command, "select * from batch_rows", "--format", form]

    printed = subprocess.run(rows, stdout=writing, stderr=subprocess.PIPE, check=False)
    complained = subprocess.run([*command, "selec"], stderr=writing, check=False, cwd=tmp_path)
    os.close(writing)

    assert (printed.returncode, printed.stderr) == (0, b"")
    assert complained.returncode == 2
