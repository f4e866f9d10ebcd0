"""A worker: a process that does one task after another, as messages on its stdin ask for them.

Messages are framed by their length. What a reader or a library prints goes nowhere, so that stdout
is the answers' alone. A worker ends when its stdin does, and with it whoever started it. Where
memory runs out, Linux takes a worker before it takes the process that started it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO

from stepscope.analyzers.fleet.messages import encoded, task_of
from stepscope.analyzers.fleet.work import carried_out

LENGTH_BYTES = 8
NAME = __name__
READY = b"ready"


def framed(message: bytes) -> bytes:
    """A message behind its length."""
    return len(message).to_bytes(LENGTH_BYTES) + message


def messages_of(stream: BinaryIO) -> Iterator[bytes]:
    """The messages of a stream, until it ends; half a message is none."""
    while len(head := stream.read(LENGTH_BYTES)) == LENGTH_BYTES:
        message = stream.read(size := int.from_bytes(head))
        if len(message) < size:
            return
        yield message


def main() -> None:
    """Work until nobody asks any more."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
    with suppress(BrokenPipeError):
        _write(answers, READY)
        for message in messages_of(sys.stdin.buffer):
            _write(answers, encoded(carried_out(task_of(message))))


def _write(stream: BinaryIO, message: bytes) -> None:
    left = memoryview(framed(message))
    while left:
        left = left[stream.write(left) :]


if __name__ == "__main__":
    main()
