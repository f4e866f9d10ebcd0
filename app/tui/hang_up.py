"""End the TUI by a signal, or when its terminal hangs up, and give the terminal back before."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from threading import Thread
from types import FrameType
from typing import Any

from stepscope.app.ending import run_exit_functions

if sys.platform != "win32":
    import termios

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
RESTORED = (
    b"\x1b[?2026l"  # a frame that was being painted
    b"\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l\x1b[?1016l"  # the mouse
    b"\x1b[?2004l\x1b[?2048l\x1b[?1004l\x1b[?7h"  # paste, size and focus reports; line wrap
    b"\x1b[<u"  # the keyboard protocol, before the alternate screen is left
    b"\x1b[?1049l\x1b[?25h\x1b[0m"  # the alternate screen, the cursor, colours
)
"""What undoes the modes that Textual sets, as its driver does when an application ends."""
GRACE_S = 2.0
"""How long the main thread, which may be in the middle of a query, has to end by a signal."""


def end_with_terminal(fileno: int) -> None:
    """End this process by a signal, or as soon as the terminal of a file descriptor hangs up.

    The terminal gets its attributes and modes back, and the process ends by the signal, as a shell
    expects; with status 128 + signal where the main thread does not see it in time. The kernel
    sends SIGHUP to the session of a terminal alone. A process in a session of its own, or one that
    was to ignore the signal, would go on for no one, and Textual would read the end of its input
    again and again, on a whole core.
    """
    if sys.platform == "win32":
        return
    attributes: list[Any] | None = None
    with suppress(termios.error):
        attributes = termios.tcgetattr(fileno)

    def end(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        _restore(fileno, attributes)
        run_exit_functions()
        os.kill(os.getpid(), number)

    numbers = {getattr(signal, name) for name in SIGNALS}
    arrived, signalled = os.pipe()
    os.set_blocking(signalled, False)
    signal.set_wakeup_fd(signalled, warn_on_full_buffer=False)
    for number in numbers:
        signal.signal(number, end)

    def wait() -> None:
        number = _next_signal(fileno, arrived, numbers)
        time.sleep(GRACE_S)
        _restore(fileno, attributes)
        run_exit_functions()
        os._exit(128 + number)

    if hasattr(select, "poll"):
        Thread(target=wait, name="hang-up", daemon=True).start()


def _next_signal(fileno: int, arrived: int, numbers: set[int]) -> int:
    """Wait without waking for a signal that ends the process; a hang-up sends one.

    A descriptor that poll is asked for no event of is reported for a hang-up alone, or an error.
    """
    waiting = select.poll()
    waiting.register(fileno, 0)
    waiting.register(arrived, select.POLLIN)
    while True:
        for descriptor, event in waiting.poll():
            if descriptor == arrived:
                if found := numbers.intersection(os.read(arrived, 1 << 10)):
                    return min(found)
            elif event & select.POLLHUP:
                os.kill(os.getpid(), signal.SIGHUP)
                return signal.SIGHUP
            else:
                waiting.unregister(fileno)


def _restore(fileno: int, attributes: list[Any] | None) -> None:
    """Give the terminal back, past Textual's own writer, which may be in the middle of a frame."""
    with suppress(OSError):
        if os.tcgetpgrp(fileno) != os.getpgrp():
            return  # in the background: another program has the terminal
    with suppress(OSError):
        output = sys.__stderr__.fileno() if sys.__stderr__ else fileno
        terminal, nowhere = os.dup(output), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, output)  # no further frame
        os.write(terminal, RESTORED)
    if attributes is not None:
        with suppress(termios.error):
            termios.tcflush(fileno, termios.TCIFLUSH)  # reports of the mouse
            termios.tcsetattr(fileno, termios.TCSANOW, attributes)
