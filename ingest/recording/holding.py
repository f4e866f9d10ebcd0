"""Whether a folder is still being written, and who finishes it: locks, which die with who has them.

It imports the standard library only, because the recorder runs inside other people's servers.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

TRIES, PAUSE_S = 100, 0.001


def hold(folder: Path) -> int | None:
    """Lock a folder until this process ends, however it does, or what is given is closed.

    None where there are no locks. Whoever asks whether it is held has it for microseconds, so this
    is tried again for a while.
    """
    for _ in range(TRIES):
        try:
            return _locked(folder, alone=True)
        except BlockingIOError:
            time.sleep(PAUSE_S)
        except OSError:
            break
    return None


def is_held(folder: Path) -> bool:
    """Tell whether a process that lives holds a folder; False where there are no locks."""
    try:
        lock = _locked(folder, alone=False)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if lock is not None:
        os.close(lock)
    return False


@contextmanager
def in_turn(folder: Path, waits: Callable[[], None]) -> Iterator[None]:
    """Hold a folder for a while: whoever comes second waits until the first is done.

    `waits` is called where somebody else has it. Nothing is held where there are no locks.
    """
    held = None
    try:
        held = _locked(folder, alone=True)
    except BlockingIOError:
        waits()
        held = _locked(folder, alone=True, at_once=False)
    except OSError:
        pass
    try:
        yield
    finally:
        if held is not None:
            os.close(held)


def _locked(folder: Path, *, alone: bool, at_once: bool = True) -> int | None:
    """A descriptor that holds the lock; `at_once` raises BlockingIOError where another has it."""
    if sys.platform == "win32":
        return None
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        fcntl.flock(opened, kind | (fcntl.LOCK_NB if at_once else 0))
    except OSError:
        os.close(opened)
        raise
    return opened
