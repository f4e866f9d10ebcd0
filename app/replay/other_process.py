"""A process of another environment: what it says, line by line, as long as it says anything."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO


def lines_of(
    command: Sequence[str], env: Mapping[str, str], stderr: IO[bytes], silent_s: float
) -> Iterator[str]:
    """Start a program and give what it writes to its standard output.

    It ends when this does, with all that it started. Raises OSError where it cannot be started,
    and TimeoutError where it says nothing for `silent_s` seconds.
    """
    with subprocess.Popen(  # noqa: S603 - the interpreter that the user names
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, text=True,
        errors="replace", env=env, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            yield from _said(process, silent_s)
        finally:
            _end(process)


def _said(process: subprocess.Popen[str], silent_s: float) -> Iterator[str]:
    assert process.stdout is not None
    has_hung = threading.Event()
    while True:
        ending = threading.Timer(silent_s, _end, (process, has_hung))
        ending.start()
        try:
            line = process.stdout.readline()
        finally:
            ending.cancel()
        if has_hung.is_set():
            raise TimeoutError
        if not line:
            return
        yield line


def _end(process: subprocess.Popen[str], has_hung: threading.Event | None = None) -> None:
    if has_hung is not None:
        has_hung.set()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
