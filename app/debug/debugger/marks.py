"""Places that were given a name, kept beside the trace: a trace itself is never written to.

Those of a trace are one file in the user's folder for states, found by the path of the trace.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from stepscope.app.debug.moments import Position
from stepscope.app.kept.state_folder import state_folder
from stepscope.ingest.errors import ConfigError, WriteError

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)


class Marks:
    """The marks of one trace; they live as long as the process where `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self.file = None if path is None else _file_of(path)
        self._read: dict[str, Position] | None = None

    @property
    def all(self) -> Mapping[str, Position]:
        """Every mark by its name; raises ConfigError where their file is damaged."""
        if self._read is None:
            self._read = _read(self.file)
        return self._read

    def put(self, name: str, mark: Position) -> None:
        """Give a place a name; raises ConfigError for what cannot be one, WriteError."""
        if not _NAME.fullmatch(name):
            todo = "use letters, digits, dots, dashes and underscores"
            raise ConfigError(f"{name!r} cannot be the name of a mark", todo=todo)
        self._keep({**self.all, name: mark})

    def drop(self, name: str) -> None:
        """Forget a mark; raises ConfigError where there is none of the name."""
        self.get(name)
        self._keep({other: mark for other, mark in self.all.items() if other != name})

    def get(self, name: str) -> Position:
        """Find a mark; raises ConfigError naming those that there are."""
        if name in self.all:
            return self.all[name]
        todo = f"there are {', '.join(self.all)}" if self.all else "mark NAME makes one"
        raise ConfigError(f"no mark is called {name!r}", todo=todo)

    def _keep(self, marks: dict[str, Position]) -> None:
        _write(self.file, marks)
        self._read = marks


def _file_of(path: Path) -> Path | None:
    """Where marks of a trace are kept; None where nothing is."""
    folder = state_folder()
    name = f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.json"
    return folder and folder / "marks" / name


def _read(file: Path | None) -> dict[str, Position]:
    """The marks of a file; none where it is missing, ConfigError where it is damaged."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=dict[str, Position]) if file else {}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(f"marks cannot be read: {error}", where=str(file)) from None


def _write(file: Path | None, marks: Mapping[str, Position]) -> None:
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
