"""What was made of files, kept in folders, so that the second open is instant.

An entry is a folder `<key>.trace`, or `<key>.index`, with the sums of its files in `sums.json`. It
is written beside its place and put there in one rename; what is damaged is dropped and made again.
Nothing that goes wrong here is an error: all is then read as if there were no cache.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl
from isal import isal_zlib

from stepscope.ingest.errors import ConfigError, StepscopeError
from stepscope.ingest.limits import size_of
from stepscope.ingest.storage.private_folder import private_folder

if sys.platform != "win32":
    import fcntl

FOLDER, MOST = "STEPSCOPE_CACHE", "STEPSCOPE_CACHE_BYTES"
OFF = "off"
MOST_BYTES = 8 << 30
ABANDONED_S = 3600
_SUMS = "sums.json"
_ENTRY = re.compile(r"[0-9a-f]{40}\.(trace|index)")
_FAILURES = (
    OSError, ValueError, KeyError, TypeError, AttributeError, pl.exceptions.PolarsError,
    StepscopeError,
)  # fmt: skip
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Entry:
    """A cached result: its folder, its size, and when it was last used."""

    folder: Path
    num_bytes: int
    used_ns: int


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of entries, the least recently used of which go when they are too many bytes."""

    folder: Path
    most_bytes: int = MOST_BYTES

    def unusable(self) -> str | None:
        """Say why nothing is kept there; makes the folder where it is missing."""
        try:
            private_folder(self.folder)
            found = self.folder.stat()
        except OSError as error:
            return error.strerror or str(error)
        if found.st_uid != os.getuid():
            return "it belongs to someone else"
        return "others may write there" if found.st_mode & 0o022 else None

    def find(
        self, name: str, opened: Callable[[Path], Found], *, is_new: bool = False
    ) -> Found | None:
        """Open the entry of a name, such as `<key>.trace`, or drop it where it is damaged.

        No other process drops it while what was opened lives. One that is new, as `keep` has just
        said, is not read once more to see that it is whole.
        """
        entry = self.folder / name
        if not entry.is_dir():
            return None
        try:
            lock = _locked(entry, fcntl.LOCK_SH)
        except OSError:
            return None
        try:
            if not is_new:
                _verify(entry)
            found = opened(entry)
        except _FAILURES:
            os.close(lock)
            _drop(entry)
            return None
        weakref.finalize(found, os.close, lock)
        with suppress(OSError):
            os.utime(entry)
        return found

    def keep(self, name: str, write: Callable[[Path], None]) -> bool:
        """Write an entry where that can be done, and make room for it; tells whether it was."""
        draft, is_there = None, False
        try:
            draft = Path(tempfile.mkdtemp(".tmp", f".{name}.", self.folder))
            os.close(_locked(draft, fcntl.LOCK_EX))  # where there are no locks, nothing is kept
            write(draft)
            if _num_bytes(draft) <= self.most_bytes:
                sums = {str(file.relative_to(draft)): _sum(file) for file in _files(draft)}
                (draft / _SUMS).write_text(json.dumps(sums))
                draft.rename(self.folder / name)
                is_there = True
        except _FAILURES:
            pass  # no room, no permission, or another process was faster
        finally:
            if draft is not None:
                shutil.rmtree(draft, ignore_errors=True)
        self._make_room(name)
        return is_there

    def entries(self) -> list[Entry]:
        """List what is kept, the least recently used first."""
        try:
            folders = list(self.folder.iterdir())
        except OSError:
            return []
        found = [entry for entry in map(_entry_at, folders) if entry]
        return sorted(found, key=lambda entry: (entry.used_ns, entry.folder))

    def clear(self) -> tuple[int, int]:
        """Drop what no other process uses; gives how many entries and bytes these were."""
        dropped = [entry for entry in self.entries() if _drop_unused(entry.folder)]
        self._sweep(older_than_s=0)
        return len(dropped), sum(entry.num_bytes for entry in dropped)

    def _make_room(self, name: str) -> None:
        entries = self.entries()
        excess = sum(entry.num_bytes for entry in entries) - self.most_bytes
        for entry in entries:
            if excess > 0 and entry.folder.name != name and _drop_unused(entry.folder):
                excess -= entry.num_bytes
        self._sweep(ABANDONED_S)

    def _sweep(self, older_than_s: float) -> None:
        """Remove what a process that was killed left half written."""
        with suppress(OSError):
            for draft in self.folder.glob(".*.tmp"):
                if time.time() - draft.lstat().st_mtime >= older_than_s:
                    shutil.rmtree(draft, ignore_errors=True)


def users_cache() -> Cache | None:
    """Give the cache that the environment asks for; None where it is off or nowhere.

    STEPSCOPE_CACHE is its folder, or `off`; else it is `stepscope` under XDG_CACHE_HOME or
    ~/.cache. STEPSCOPE_CACHE_BYTES is its size at most. Raises `ConfigError` for a wrong size.
    """
    said = os.environ.get(FOLDER, "").strip()
    if said.lower() == OFF or sys.platform == "win32":
        return None
    most_bytes = MOST_BYTES
    if text := os.environ.get(MOST):
        if (found := size_of(text)) is None:
            raise ConfigError(
                f"{MOST}={text!r} is not a number of bytes", todo="write it like 2GiB"
            )
        most_bytes = found
    if said:
        return Cache(Path(said), most_bytes)
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    with suppress(RuntimeError):  # no home
        return Cache(
            (shared if shared.is_absolute() else Path.home() / ".cache") / "stepscope", most_bytes
        )
    return None


def _verify(entry: Path) -> None:
    """Raise one of _FAILURES unless every file of the entry is as it was written."""
    sums = json.loads((entry / _SUMS).read_bytes())
    if any(_sum(entry / name) != expected for name, expected in sums.items()):
        raise ValueError("a file was damaged")


def _sum(file: Path) -> list[int]:
    """Size and CRC of a file."""
    num_bytes = crc = 0
    with file.open("rb") as opened:
        while block := opened.read(1 << 20):
            num_bytes += len(block)
            crc = isal_zlib.crc32(block, crc)
    return [num_bytes, crc]


def _files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.is_file()]


def _num_bytes(folder: Path) -> int:
    """Size of an entry: what it says itself, for in a full cache are some ten thousand files."""
    try:
        text = (folder / _SUMS).read_bytes()
        sums: dict[str, tuple[int, int]] = json.loads(text)
        return len(text) + sum(num_bytes for num_bytes, _ in sums.values())
    except _FAILURES:
        return sum(file.lstat().st_size for file in _files(folder))


def _entry_at(folder: Path) -> Entry | None:
    try:
        found = folder.lstat()
        # A link is not followed: what it leads to is not ours to drop.
        if _ENTRY.fullmatch(folder.name) and stat.S_ISDIR(found.st_mode):
            return Entry(folder, _num_bytes(folder), found.st_mtime_ns)
    except OSError:
        pass  # dropped meanwhile
    return None


def _locked(entry: Path, how: int) -> int:
    """Lock an entry until what is returned is closed; raises `OSError` where another has it."""
    lock = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, how | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


def _drop_unused(entry: Path) -> bool:
    """Drop an entry unless a process has it open."""
    try:
        lock = _locked(entry, fcntl.LOCK_EX)
    except OSError:
        return False
    try:
        return _drop(entry)
    finally:
        os.close(lock)


def _drop(entry: Path) -> bool:
    """Take an entry away in one rename, so that nobody finds half of one, and remove it."""
    gone = entry.with_name(f".{entry.name}.{os.getpid()}.tmp")
    try:
        entry.rename(gone)
    except OSError:
        return False
    shutil.rmtree(gone, ignore_errors=True)
    return True
