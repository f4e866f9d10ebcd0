"""End commands by signals: release resources, and exit with 128 + the signal's number.

A handler raises `Ended` in the main thread, so that temporary folders, child processes and locks
are cleaned up as after an error. If the main thread does not end within GRACE_S, because it waits
for another thread, the process exits without it.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import threading
import time
from contextlib import suppress
from types import FrameType
from typing import NoReturn

SIGNALS = ("SIGTERM", "SIGHUP")
GRACE_S = 5.0
"""Seconds that the main thread has to end before the process exits."""


class Ended(SystemExit):
    """A signal ended the command; `code` is its exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)
        self.number = number

    @property
    def exit_code(self) -> int:
        """128 + the signal, as a shell reports it."""
        return 128 + self.number

    def __str__(self) -> str:
        is_interrupt = self.number == signal.SIGINT
        return "interrupted" if is_interrupt else f"ended by {signal.Signals(self.number).name}"


_ending = threading.Event()


def is_ending() -> bool:
    """Whether a signal has ended the command, so that what fails while it ends is no error."""
    return _ending.is_set()


def end_by_signals() -> None:
    """Let SIGTERM and SIGHUP end the command, unless they are ignored (`nohup`)."""
    _take(*(getattr(signal, name) for name in SIGNALS if hasattr(signal, name)))


def end_by_interrupt() -> None:
    """Let Ctrl-C end the command, too: for servers whose threads wait for a client."""
    _take(signal.SIGINT)


def end_with_reader(fileno: int) -> None:
    """End the process with exit code 0 as soon as its output pipe has no reader.

    A client may leave the input pipe open when it ends, and a server would wait for it.
    """
    if hasattr(select, "poll"):
        own = os.dup(fileno)  # another stream may take the number
        threading.Thread(target=_watch, args=(own,), name="reader", daemon=True).start()


def _watch(fileno: int) -> None:
    waiting = select.poll()
    waiting.register(fileno, 0)  # of no event: it is reported for an error or a hang-up alone
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in waiting.poll()):
        leave(0)


def _take(*numbers: signal.Signals) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    for number in numbers:
        if signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    _ending.set()
    for name in ("SIGINT", *SIGNALS):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)  # it is ending already
    threading.Thread(target=_end_late, args=(number,), name="ending", daemon=True).start()
    raise Ended(number)


def _end_late(number: int) -> None:
    time.sleep(GRACE_S)
    leave(128 + number)


def leave(code: int) -> NoReturn:
    """End the process without waiting for threads, after removing folders and child processes."""
    run_exit_functions()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(code)


def run_exit_functions() -> None:
    """Run the exit functions now, which `os._exit` skips: temporary folders, child processes."""
    with suppress(Exception):
        atexit._run_exitfuncs()
