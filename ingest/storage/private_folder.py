"""Folders that only their owner reaches."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def private_folder(folder: Path) -> None:
    """Make a folder and the missing ones above it with mode 0700; OSError where that fails.

    `Path.mkdir(mode=...)` makes those above it with the mode that the umask leaves.
    """
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for part in reversed(missing):
        part.mkdir(mode=0o700, exist_ok=True)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
