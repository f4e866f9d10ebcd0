"""What to do when the terminal is gone: end, as SIGHUP does, also where that reaches nobody."""

from __future__ import annotations

import os
import select
import signal
from threading import Thread


def end_with_terminal(fileno: int) -> None:
    """End this process as soon as the terminal of a file descriptor hangs up.

    The kernel sends SIGHUP to the session of a terminal alone. A process in a session of its own,
    or one that was told to ignore the signal, would go on for nobody, and Textual would read the
    end of its input again and again, on a whole core.
    """
    if hasattr(select, "poll"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        Thread(target=_wait, args=(fileno,), name="hang-up", daemon=True).start()


def _wait(fileno: int) -> None:
    """Wait without waking: who asks poll for no event is told of a hang-up alone, or an error."""
    waiting = select.poll()
    waiting.register(fileno, 0)
    if any(told & select.POLLHUP for _, told in waiting.poll()):
        os.kill(os.getpid(), signal.SIGHUP)
