"""What can be read below the named folders: told by the first bytes, as whoever opens it would."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.app.mcp.desk.folders import Folders
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.readers import reader_of
from stepscope.ingest.storage.store import holds_trace

MOST_LOOKED_AT = 2_000
"""Files and folders whose first bytes are read for one answer."""
MOST_DEPTH = 12


@dataclass(slots=True)
class Below:
    """What was found: name, format and bytes of each, in order; and whether there is more."""

    found: list[dict[str, object]] = field(default_factory=list)
    num_others: int = 0
    is_cut: bool = False


def traces_below(folders: Folders, containing: str = "") -> Below:
    """Look through all folders, for names that contain a text, in whatever case."""
    below = Below()
    wanted = containing.casefold()
    number = 0
    for root, folder in folders.by_name.items():
        for path in _candidates(folders, folder):
            name = folders.name_of(root, path)
            if wanted not in name.casefold():
                continue
            number += 1
            if number > MOST_LOOKED_AT:
                below.is_cut = True
                return below
            form = _format(path)
            if form is None:
                below.num_others += 1
                continue
            below.found.append({"trace": name, "format": form, "bytes": _num_bytes(path)})
    return below


def _candidates(folders: Folders, folder: Path, depth: int = 0) -> Iterator[Path]:
    """Files, and folders that are a trace, into which it does not go; by name."""
    if holds_trace(folder):
        yield folder
        return
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith(".") or (entry.is_symlink() and not folders.holds(path)):
            continue
        if entry.is_dir(follow_symlinks=False):
            if depth < MOST_DEPTH:
                yield from _candidates(folders, path, depth + 1)
        elif _is_regular(path):
            yield path


def _format(path: Path) -> str | None:
    """What it is read as; None for what no reader takes."""
    try:
        return reader_of(path).name
    except (StepscopeError, OSError):
        return None


def _is_regular(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _num_bytes(path: Path) -> int | None:
    try:
        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        return path.stat().st_size
    except OSError:
        return None
