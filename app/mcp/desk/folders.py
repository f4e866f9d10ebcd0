"""The folders that were named at start: whatever is asked about lies below one of them.

What is compared are places on the disk, with all links followed, so that no name leads out: not by
`..`, not as an absolute path, and not by a link, be it the path itself or anything in a folder that
is read whole. Who may write below a folder can swap a file for a link while it is looked at; who
may do that can as well put the file there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from stepscope.ingest.errors import ConfigError, TraceError

MOST_CHARS = 4_096
MOST_ENTRIES = 100_000
"""Of a folder that is read as one trace."""
OUTSIDE = "it is not below a folder that was named at start"
NO_SUCH = "there is no such file"
LISTED = "the tool traces lists what is there"


@dataclass(frozen=True, slots=True)
class Place:
    """A file or folder that may be read: what it is called, and where it is on the disk."""

    name: str
    path: Path


class Folders:
    """The named folders, each by a name of its own."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Take the folders as they were named; raises ConfigError where one is none."""
        self.by_name: dict[str, Path] = {}
        for folder in folders:
            try:
                real = folder.resolve(strict=True)
            except (OSError, ValueError, RuntimeError):
                raise ConfigError(
                    "there is no such folder", where=str(folder), todo="name one"
                ) from None
            if not real.is_dir():
                todo = "name the folder that it is in"
                raise ConfigError("it is a file, not a folder", where=str(folder), todo=todo)
            if real not in self.by_name.values():
                self.by_name[self._free_name(real.name or "root")] = real

    def _free_name(self, name: str) -> str:
        number = 2
        free = name
        while free in self.by_name:
            free, number = f"{name}-{number}", number + 1
        return free

    def place(self, given: str) -> Place:
        """What may be read by this name: as `traces` lists it, or an absolute path that is inside.

        Raises ConfigError for what is outside, whether it is there or not, TraceError for what is
        inside and is not there.
        """
        if not given or "\0" in given or len(given) > MOST_CHARS:
            raise ConfigError("it is no name of a file", todo=LISTED)
        if ".." in PurePath(given).parts:
            raise ConfigError(OUTSIDE, todo=LISTED)
        is_missing = False
        for path in self._meant(given):
            real = _real(path)
            if not self._has(real):
                continue
            if _is_there(real):
                self._refuse_what_leads_out(real)
                return Place(self._called(path, given), real)
            is_missing = True
        if is_missing:
            raise TraceError(NO_SUCH, where=given, todo=LISTED)
        raise ConfigError(OUTSIDE, todo=LISTED)

    def holds(self, path: Path) -> bool:
        """Whether a path, all links followed, is inside."""
        return self._has(_real(path))

    def _has(self, real: Path) -> bool:
        return any(real == root or root in real.parents for root in self.by_name.values())

    def name_of(self, root: str, path: Path) -> str:
        """What a path below one of the folders is called."""
        inside = path.relative_to(self.by_name[root])
        return (PurePath(root) / inside).as_posix()

    def _meant(self, given: str) -> Iterator[Path]:
        pure = PurePath(given)
        if pure.is_absolute():
            yield Path(given)
            return
        first, *others = pure.parts or (".",)
        if first in self.by_name:
            yield self.by_name[first].joinpath(*others)
        yield from (root / given for root in self.by_name.values())

    def _called(self, path: Path, given: str) -> str:
        for name, root in self.by_name.items():
            with suppress(ValueError):
                return (PurePath(name) / path.relative_to(root)).as_posix()
        return PurePath(given).name

    def _refuse_what_leads_out(self, real: Path) -> None:
        """Raise ConfigError where a folder has a link that leads out, or what is no file."""
        if not real.is_dir():
            _refuse_special(real)
            return
        for number, entry in enumerate(_entries(real)):
            if number > MOST_ENTRIES:
                told = f"the folder has more than {MOST_ENTRIES:,} entries"
                raise ConfigError(told, todo="name a trace in it")
            if entry.is_symlink() and not self.holds(Path(entry.path)):
                raise ConfigError("a link in it leads out of the folders that were named at start")
            if not entry.is_dir():
                _refuse_special(Path(entry.path))


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Everything below a folder; no link is followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(Path(entry.path))


def _refuse_special(file: Path) -> None:
    """Raise ConfigError for a pipe or a device: to read one waits forever, or never ends."""
    try:
        mode = file.stat().st_mode
    except OSError:
        return  # who reads it says what is wrong
    if not stat.S_ISREG(mode):
        raise ConfigError("it is neither a file nor a folder of files")


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return Path(os.sep, "nowhere")


def _is_there(real: Path) -> bool:
    try:
        return real.exists()
    except OSError:  # its name is longer than a name may be
        return False
