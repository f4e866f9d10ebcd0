"""Whether a folder is still being written: its writer holds a lock on it, which dies with it.

It imports the standard library only, because the recorder runs inside other people's servers.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl


def hold(folder: Path) -> int | None:
    """Lock a folder until this process ends, however it does, or what is given is closed.

    None where there are no locks.
    """
    with suppress(OSError):
        return _locked(folder, alone=True)
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


def _locked(folder: Path, *, alone: bool) -> int | None:
    """A descriptor that holds the lock; raises BlockingIOError where somebody else has it."""
    if sys.platform == "win32":
        return None
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        raise
    return opened
