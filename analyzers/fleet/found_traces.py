"""Which traces a fleet has: jobs, which are folders of rank files, and traces by themselves.

A folder that opens as one trace is one: a job where it is read as a folder of rank files, else as a
whole. Of any other folder every file is a trace, and what is below is looked at in the same way.
Links to folders are not followed, so that no loop of them is endless; archives are left out.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from stepscope.analyzers.fleet.archive.partitions import is_archive
from stepscope.analyzers.fleet.fetched import store_of
from stepscope.analyzers.fleet.messages import Place
from stepscope.ingest.errors import ConfigError, TraceError
from stepscope.ingest.readers import reader_of, readers
from stepscope.ingest.readers.encodings.inflate import inflated
from stepscope.ingest.readers.rank_folder import RankFolderReader
from stepscope.ingest.readers.rank_folder import files_of as rank_files_of
from stepscope.ingest.readers.seam import HEAD_BYTES, Reader

_MANIFEST = "manifest"


@dataclass(frozen=True, slots=True)
class Found:
    """A trace: its name, and its files; of a job those are of ranks, of any other it is one place.

    `why` says why it cannot be looked at at all.
    """

    name: str
    places: tuple[Place, ...]
    is_job: bool = False
    why: str = ""


def found_traces(patterns: Iterable[str]) -> list[Found]:
    """The traces that paths, patterns of paths and URLs name, by name, each once.

    Raises ConfigError where one names nothing, or an archive.
    """
    found: dict[str, Found] = {}
    for pattern in patterns:
        each = list(_of_url(pattern) if "://" in pattern else _of_pattern(pattern))
        if not each:
            todo = "name files, folders, a pattern in quotes, or a URL"
            raise ConfigError("nothing is found there", where=pattern, todo=todo)
        found |= {one.name: one for one in each}
    return [found[name] for name in sorted(found)]


def shown(path: Path | str | bytes) -> str:
    """A path as text that any file can hold."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _of_pattern(pattern: str) -> Iterator[Found]:
    path = Path(pattern)
    if not os.path.lexists(path):
        for each in sorted(glob.glob(pattern, recursive=True)):
            yield from _of_path(Path(each))
        return
    if is_archive(path):
        raise ConfigError("it is an archive, and no trace", where=pattern)
    yield from _of_path(path)


def _of_path(path: Path) -> Iterator[Found]:
    if not path.is_dir():
        yield _one(path)
    elif not is_archive(path):
        yield from _of_folder(path)


def _one(path: Path, why: str = "") -> Found:
    return Found(shown(path), (Place(os.fsencode(path)),), why=why)


def _of_folder(folder: Path) -> Iterator[Found]:
    try:
        reader: Reader | None = reader_of(folder)
        below = sorted(os.scandir(folder), key=lambda each: each.name)
    except TraceError as error:
        if "cannot be read" in error.what:
            yield _one(folder, error.what)
            return
        reader, below = None, sorted(os.scandir(folder), key=lambda each: each.name)
    if reader is not None and not isinstance(reader, RankFolderReader):
        yield _one(folder)
        return
    if reader is not None:
        places = tuple(Place(os.fsencode(file)) for file in rank_files_of(folder))
        yield Found(shown(folder), places, is_job=True)
    for each in below:
        if each.is_dir(follow_symlinks=False):
            yield from _of_path(Path(each.path))
        elif reader is None and not each.is_dir():
            yield _one(Path(each.path))


def _of_url(url: str) -> Iterator[Found]:
    """The same of a store: folders that hold a manifest are traces, and those with profiles jobs.

    Which files are profiles is told by their first bytes, as everywhere.
    """
    files, inside = store_of(url)
    try:
        listed = files.glob(inside) if glob.has_magic(inside) else [inside]
        every = {name for each in listed for name in files.find(each)}
    except Exception as error:  # each store has exceptions of its own
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise TraceError(f"it cannot be listed: {said}", where=url) from None
    by_folder: dict[str, list[str]] = {}
    for name in sorted(every):
        by_folder.setdefault(name.rpartition("/")[0], []).append(name)
    whole = [folder for folder, names in by_folder.items() if _holds_manifest(names)]
    for folder in whole:
        yield _remote(files.unstrip_protocol(folder))
    for folder, names in by_folder.items():
        if any(f"{folder}/".startswith(f"{each}/") for each in whole):
            continue
        places = tuple(
            Place(files.unstrip_protocol(name).encode(), is_remote=True) for name in names
        )
        is_job = folder not in {name.rpartition("/")[0] for name in listed if name in every}
        if is_job and any(_is_of_a_rank(_head(files, name), name) for name in names):
            yield Found(files.unstrip_protocol(folder), places, is_job=True)
        else:
            yield from (_remote(place.path.decode()) for place in places)


def _remote(url: str) -> Found:
    return Found(url, (Place(url.encode(), is_remote=True),))


def _holds_manifest(names: Iterable[str]) -> bool:
    return any(
        name.rpartition("/")[2].startswith(_MANIFEST) and name.endswith(".json") for name in names
    )


@cache
def _readers() -> tuple[Reader, ...]:
    return tuple(reader for reader in readers() if reader.one_per_rank)


def _head(files: Any, name: str) -> bytes:
    """How a file begins; nothing of one that is not given, which is named once it is fetched."""
    try:
        return bytes(files.cat_file(name, end=HEAD_BYTES))
    except Exception:  # each store has exceptions of its own
        return b""


def _is_of_a_rank(head: bytes, name: str) -> bool:
    """Whether the file that begins so is one that a folder of has one per rank."""
    start = inflated(head, HEAD_BYTES) if head else b""
    return any(reader.sniff(start, Path(name)) for reader in _readers())
