"""Places that were given a name, kept beside the trace: a trace itself is never written to.

Those of a trace are one file in the user's folder for states, found by the path of the trace.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from stepscope.ingest.errors import ConfigError, WriteError

FOLDER = "STEPSCOPE_STATE"
OFF = "off"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)


class Mark(msgspec.Struct, frozen=True):
    """Where a name leads: a rank, and there a step's position or a time in between."""

    rank: int
    step: int | None
    seq: int | None
    ts_ns: int


class Marks:
    """The marks of one trace; they live as long as the process where `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self.file = None if path is None else _file_of(path)
        self._marks = _read(self.file)

    @property
    def all(self) -> Mapping[str, Mark]:
        """Every mark by its name."""
        return self._marks

    def put(self, name: str, mark: Mark) -> None:
        """Give a place a name; raises ConfigError for what cannot be one, WriteError."""
        if not _NAME.fullmatch(name):
            todo = "use letters, digits, dots, dashes and underscores"
            raise ConfigError(f"{name!r} cannot be the name of a mark", todo=todo)
        self._marks = {**self._marks, name: mark}
        _write(self.file, self._marks)

    def drop(self, name: str) -> None:
        """Forget a mark; raises ConfigError where there is none of the name."""
        self.get(name)
        self._marks = {other: mark for other, mark in self._marks.items() if other != name}
        _write(self.file, self._marks)

    def get(self, name: str) -> Mark:
        """Find a mark; raises ConfigError naming those that there are."""
        if name in self._marks:
            return self._marks[name]
        todo = f"there are {', '.join(self._marks)}" if self._marks else "mark NAME makes one"
        raise ConfigError(f"no mark is called {name!r}", todo=todo)


def _file_of(path: Path) -> Path | None:
    """Where marks of a trace are kept; None where STEPSCOPE_STATE is `off`, or without a home."""
    said = os.environ.get(FOLDER, "").strip()
    if said.lower() == OFF:
        return None
    shared = Path(os.environ.get("XDG_STATE_HOME", ""))
    name = f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.json"
    if said:
        return Path(said) / "marks" / name
    with suppress(RuntimeError):
        home = shared if shared.is_absolute() else Path.home() / ".local" / "state"
        return home / "stepscope" / "marks" / name
    return None


def _read(file: Path | None) -> dict[str, Mark]:
    """The marks of a file; none where it is missing, ConfigError where it is damaged."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Mark]) if file else {}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"marks cannot be read: {error}", where=str(file)) from None


def _write(file: Path | None, marks: Mapping[str, Mark]) -> None:
    """Put all marks in place of those that were there, in one rename."""
    if file is None:
        return
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.write_bytes(msgspec.json.encode(marks))
        draft.replace(file)
    except OSError as error:
        raise WriteError(f"marks cannot be kept: {error.strerror}", where=str(file)) from None
