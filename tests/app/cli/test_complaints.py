"""What is wrong is said in a line, which people see as wide as their terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.app.both_fronts import stories
from tests.looped import looped
from tests.tiers import slow

COMMAND = [sys.executable, "-m", "stepscope.app"]
LONG = "break lifecycle: nonsense_of_a_column = 1 and another_one > 2 and yet_another < 3"


def in_a_terminal(arguments: list[str], columns: int, typed: str = "") -> list[str]:
    """What a command writes to stderr, where that is a terminal so wide."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    subprocess.run(
        [*COMMAND, *arguments], input=typed, text=True, stdout=subprocess.DEVNULL, stderr=theirs,
        check=False,
    )  # fmt: skip
    os.close(theirs)
    told = b""
    while part := _read(ours):
        told += part
    os.close(ours)
    return told.decode().replace("\r\n", "\n").splitlines()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody writes to it any more
        return b""


@slow
@looped("columns", [40, 80])
def test_what_is_wrong_with_a_command_of_the_prompt_is_no_wider_than_the_terminal(
    sample_traces: Path, columns: int
) -> None:
    lines = in_a_terminal(["debug", str(sample_traces / stories.BEFORE)], columns, LONG)

    assert len(lines) > 1
    assert max(map(len, lines)) <= columns
    assert lines[0].startswith("stepscope: ")
    assert all(line.startswith("  ") for line in lines[1:])


def test_what_is_wrong_with_a_command_is_no_wider_than_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing that anybody reads")

    lines = in_a_terminal(["info", str(tmp_path / "notes.txt")], 80)

    assert len(lines) > 1
    assert all(len(line) <= 80 for line in lines if "/" not in line)


@slow
def test_a_pipe_has_it_in_one_line(sample_traces: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "debug", str(sample_traces / stories.BEFORE)], input=LONG, text=True,
        capture_output=True, check=False,
    )  # fmt: skip

    (line,) = done.stderr.splitlines()
    assert len(line) > 80
