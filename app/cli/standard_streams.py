"""Standard streams that are closed, broken or full: a command ends as it would with others."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, cast

from stepscope.ingest.errors import WriteError

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _WatchedFile(io.FileIO):
    """A file that notes the error of a write; one of messages drops what it cannot write."""

    def __init__(self, number: int, *, is_of_messages: bool) -> None:
        super().__init__(number, "w", closefd=False)
        self.failure: OSError | None = None
        self._is_of_messages = is_of_messages

    def write(self, data: Buffer, /) -> int:
        """Write the data; of messages all of it counts as written where that fails."""
        try:
            return super().write(data)
        except OSError as error:
            self.failure = error
            if self._is_of_messages:
                return len(memoryview(data))
            raise


def open_closed_streams() -> None:
    """Open the null device for each standard stream that the caller closed (`>&-`).

    Python has None for such a stream, and the next file that is opened takes its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    sys.stdin = sys.stdin or _null("r")
    sys.stdout = sys.stdout or _null("w")
    sys.stderr = sys.stderr or _null("w")


def _null(mode: str) -> TextIO:
    number = os.open(os.devnull, os.O_RDWR)  # it lives as long as the process
    return cast("TextIO", open(number, mode, encoding="utf-8", closefd=False))


def watch_streams() -> None:
    """Note a failure of stdout for `stdout_failure`; let messages on stderr be lost where it fails.

    A command goes on without its messages, and its exit code stays what it is.
    """
    sys.stdout = _watched(sys.stdout, is_of_messages=False)
    sys.stderr = _watched(sys.stderr, is_of_messages=True)


def _watched(stream: TextIO, *, is_of_messages: bool) -> TextIO:
    try:
        stream.flush()
        file = _WatchedFile(stream.fileno(), is_of_messages=is_of_messages)
    except (OSError, ValueError):  # another stream may stand in its place
        return stream
    _FILES[is_of_messages] = file
    return io.TextIOWrapper(
        io.BufferedWriter(file), encoding=stream.encoding, errors=stream.errors,
        line_buffering=is_of_messages or stream.isatty(),
    )  # fmt: skip


_FILES: dict[bool, _WatchedFile] = {}
"""The files of the streams that are watched, by whether they are of messages."""


def stdout_failure() -> OSError | None:
    """The error with which a watched stdout took no more; None where it takes what is written.

    What it failed to take may be in its buffer yet: it is dropped, so that Python's exit is silent.
    """
    file = _FILES.get(False)
    if file is None or file.failure is None:
        return None
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, file.fileno())
        os.close(null)
    return file.failure


def unwritable_stdout(error: OSError) -> WriteError:
    """What to report of a stdout that failed for another reason than that its reader has gone."""
    what = f"cannot be written: {error.strerror or error}"
    return WriteError(what, where="standard output", todo="free space there, or send it elsewhere")
