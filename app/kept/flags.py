"""Flags: places of a trace that were given a name and a note. A trace itself is never written to.

Those of a trace are one file in the user's folder for states, found by the path of the trace. They
are the debugger's and both fronts' alike: whoever changes one reads the file again under a lock and
puts it back in one rename, so that nothing is lost where several have the trace open.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from stepscope.app.kept.state_folder import state_folder
from stepscope.ingest.errors import ConfigError, WriteError
from stepscope.ingest.recording.holding import in_turn
from stepscope.ingest.storage.private_folder import private_folder

MOST = 1_000
"""Flags of one trace."""
LONGEST_NOTE = 400
"""Characters of a note."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
_OWN = "flag-"
"""What the name of a flag begins with that nobody gave one."""
Old = tuple[int, int | None, int | None, int]
"""A mark of the debugger as it was kept before flags had notes: rank, step, seq, time."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A time of the trace's clock, and what is noted there.

    `lane` is the section, the group and the label of a lane, where it is of one. With a `rank` it
    is a place in the order of that rank's rows, as the debugger stands at one: `step` is the last
    whose batch was formed, and `seq` the last change that was applied.
    """

    ts_ns: int
    note: str = ""
    lane: tuple[str, str, str] | None = None
    rank: int | None = None
    step: int | None = None
    seq: int | None = None


Named = Mapping[str, Flag]


_FLAGS = msgspec.json.Decoder(dict[str, Flag | Old])


class Flags:
    """The flags of one trace; they live as long as the process where `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self.file = None if path is None else _file_of(path)
        self._read: dict[str, Flag] = {}
        self._seen: object = None
        self._lock = threading.RLock()

    @property
    def all(self) -> Named:
        """Every flag by its name, as they are kept by now; raises ConfigError where damaged."""
        with self._lock:
            seen = _signature(self.file)
            if seen != self._seen:
                self._read, self._seen = _read(self.file), seen
            return self._read

    def get(self, name: str) -> Flag:
        """Find a flag; raises ConfigError naming those that there are."""
        return _found(self.all, name)

    def put(self, name: str, flag: Flag) -> str:
        """Put a flag in place of what has its name; without a name under the next that is free.

        Gives the name. Raises ConfigError for what cannot be one, WriteError.
        """
        with self._changing() as flags:
            given = name or _next(flags)
            flags[_sane(given)] = _short(flag)
        return given

    def add(self, name: str, flag: Flag) -> str:
        """The same of a flag that is new; raises ConfigError also where its name is taken."""
        with self._changing() as flags:
            given = _free(flags, name or _next(flags))
            flags[given] = _short(flag)
        return given

    def change(self, name: str, to: str, note: str) -> str:
        """Give a flag another name, its own where none is given, and another note.

        Raises ConfigError where there is none of the name, or somebody else has the new one.
        """
        with self._changing() as flags:
            flag, given = _short(replace(_found(flags, name), note=note)), to or name
            if given != name:
                _free(flags, given)
                del flags[name]
            flags[given] = flag
        return given

    def drop(self, name: str) -> None:
        """Forget a flag; raises ConfigError where there is none of the name."""
        with self._changing() as flags:
            _found(flags, name)
            del flags[name]

    def typed(self, line: str, flag: Flag, was: str = "") -> str | None:
        """Do what a line says that was typed at a place: a flag there, with this name and note.

        `was` is the flag that is there already: it is changed, and dropped where the line is empty.
        Gives the name; None where there is no flag any more, or none was put. Raises as `add` and
        `change` do.
        """
        if not line.strip():
            if was:
                self.drop(was)
            return None
        name, note = read_line(line)
        return self.change(was, name, note) if was else self.add(name, replace(flag, note=note))

    @property
    def next_name(self) -> str:
        """The name that the next flag has whom nobody gives one."""
        return _next(self.all)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Flag]]:
        """The flags to change, as they are kept by now; they are kept where nothing is raised."""
        with self._lock, _alone(self.file):
            flags = dict(self._read if self.file is None else _read(self.file))
            yield flags
            if len(flags) > MOST:
                raise ConfigError(f"a trace has {MOST:,} flags at most", todo="delete some of them")
            _write(self.file, flags)
            self._read, self._seen = flags, _signature(self.file)


def line_of(name: str, note: str) -> str:
    """A flag as it is typed in: `@name note`."""
    return f"@{name} {note}"


def read_line(line: str) -> tuple[str, str]:
    """The name and the note of a flag as it is typed in; the name is empty where none is given.

    Raises ConfigError for a name that cannot be one.
    """
    text = " ".join(line.split())
    if not text.startswith("@"):
        return "", text
    name, _, note = text.removeprefix("@").partition(" ")
    return _sane(name), note


def _sane(name: str) -> str:
    if not _NAME.fullmatch(name):
        todo = "use letters, digits, dots, dashes and underscores, 64 at most"
        raise ConfigError(f"{name[:80]!r} cannot be the name of a flag", todo=todo)
    return name


def _short(flag: Flag) -> Flag:
    if len(flag.note) > LONGEST_NOTE:
        todo = f"write one of {LONGEST_NOTE} at most"
        raise ConfigError(f"a note of {len(flag.note):,} characters is not kept", todo=todo)
    return flag


def _free(flags: Named, name: str) -> str:
    if _sane(name) in flags:
        raise ConfigError(f"there is a flag @{name} already", todo="give this one another name")
    return name


def _next(flags: Named) -> str:
    return next(name for at in range(1, len(flags) + 2) if (name := f"{_OWN}{at}") not in flags)


def _found(flags: Named, name: str) -> Flag:
    if name in flags:
        return flags[name]
    listed = ", ".join([*flags][:20]) + ", …" * (len(flags) > 20)
    todo = f"there are {listed}" if flags else "flag NAME makes one"
    raise ConfigError(f"no flag is called {name!r}", todo=todo)


def _file_of(path: Path) -> Path | None:
    """Where flags of a trace are kept; None where nothing is."""
    folder = state_folder()
    name = f"{hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]}.json"
    return folder and folder / "marks" / name


def _signature(file: Path | None) -> object:
    """What tells a file from what it was when it was read; None where there is none."""
    try:
        told = file.stat() if file else None
    except OSError:
        return None
    return told and (told.st_ino, told.st_size, told.st_mtime_ns)


def _read(file: Path | None) -> dict[str, Flag]:
    """The flags of a file; none where it is missing, ConfigError where it is damaged."""
    try:
        kept = _FLAGS.decode(file.read_bytes()) if file else {}
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise ConfigError(f"flags cannot be read: {error}", where=str(file)) from None
    return {name: _of_old(flag) if isinstance(flag, tuple) else flag for name, flag in kept.items()}


def _of_old(mark: Old) -> Flag:
    rank, step, seq, ts_ns = mark
    return Flag(ts_ns, rank=rank, step=step, seq=seq)


@contextmanager
def _alone(file: Path | None) -> Iterator[None]:
    """Have the folder of a file to oneself: whoever comes second waits."""
    if file is None:
        yield
        return
    _kept(file, lambda: private_folder(file.parent))
    with in_turn(file.parent, lambda: None):
        yield


def _write(file: Path | None, flags: Named) -> None:
    """Put all flags in place of those that were there, in one rename."""
    if file is None:
        return
    draft = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.tmp")

    def write() -> None:
        draft.touch(mode=0o600)
        draft.write_bytes(msgspec.json.encode(flags))
        draft.replace(file)

    _kept(file, write)


def _kept(file: Path, write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as error:
        said = f"flags cannot be kept: {error.strerror or error}"
        raise WriteError(
            said, where=str(file), todo="set STEPSCOPE_STATE to a folder of yours"
        ) from None
