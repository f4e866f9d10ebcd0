"""Whether what was opened is still what lies on the disk, and what was begun beside it since."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from stepscope.ingest.live.growing_trace import is_recording
from stepscope.ingest.manifest import manifest_files

MOST_BESIDE = 1_000
"""Directories beside a recording that are looked at."""
Sign = tuple[tuple[str, int, int, int], ...]


class OnDisk:
    """What lay at a path when it was opened: a file, or the manifests of a trace directory."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sign = _sign(path)

    @property
    def has_changed(self) -> bool:
        """Whether something else lies there now; what is gone has not changed."""
        return not self.is_gone and _sign(self.path) != self._sign

    @property
    def is_gone(self) -> bool:
        """Whether nothing lies there any more, where something did."""
        return bool(self._sign) and not self.path.exists()


def begun_since(path: Path) -> Path | None:
    """A recording in progress in a directory beside this one, the latest: a start after this."""
    beside = [each for each in _beside(path) if is_recording(each)]
    return max(beside, key=lambda each: each.name, default=None)


def _beside(path: Path) -> Iterator[Path]:
    with suppress(OSError):
        found = sorted(path.resolve().parent.glob("*.trace"), reverse=True)[:MOST_BESIDE]
        yield from (each for each in found if each.is_dir() and each != path.resolve())


def _sign(path: Path) -> Sign:
    """Name, inode, size and time of change of the file, or of what says what a directory holds."""
    found = []
    with suppress(OSError):
        files = [path] if path.is_file() else [path, *manifest_files(path).values()]
        for each in files:
            told = each.stat()
            when = 0 if each.is_dir() else told.st_mtime_ns
            size = 0 if each.is_dir() else told.st_size
            found.append((each.name, told.st_ino, size, when))
    return tuple(found)
