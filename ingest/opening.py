"""Reading a file of whatever format, or taking what was kept of reading it before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.ingest.frames import Frame
from stepscope.ingest.limits import Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.readers import reader_of
from stepscope.ingest.readers.reader import Reader

if TYPE_CHECKING:
    from stepscope.ingest.trace import Progress

WORTH_BYTES = 128 << 10
"""A smaller file is read in tens of milliseconds, about what tables on disk cost more to check."""


@dataclass(frozen=True, slots=True)
class Found:
    """Tables and manifest of a file; the tables can be read while `kept` lives."""

    frames: Mapping[str, Frame]
    manifest: Manifest
    kept: object = None


def read(path: Path, progress: Progress | None, limits: Limits, *, cached: bool = True) -> Found:
    """Read a file or directory, or what is kept of it; raises `TraceError`."""
    reader = reader_of(path)
    sources = reader.sources(path) if cached else []
    if _num_bytes(sources) > WORTH_BYTES:
        return _read_kept(reader, path, sources, progress, limits)
    return Found(*reader.read(path, progress, limits))


def _read_kept(
    reader: Reader,
    path: Path,
    sources: Sequence[Path],
    progress: Progress | None,
    limits: Limits,
) -> Found:
    from stepscope.ingest.cache import users_cache  # noqa: PLC0415 - a small file needs none
    from stepscope.ingest.cache_key import key_of  # noqa: PLC0415

    cache = users_cache()
    key = key_of(path, sources, limits) if cache and not cache.unusable() else None
    if cache is None or key is None:
        return Found(*reader.read(path, progress, limits))
    if kept := cache.find(key):
        return Found(kept.frames, kept.manifest, kept)
    found = Found(*reader.read(path, progress, limits))
    if key_of(path, reader.sources(path), limits) != key:
        return found  # it is being written
    cache.keep(key, found.frames, found.manifest)
    kept = cache.find(key)  # so that what was read need not stay in memory
    return Found(kept.frames, kept.manifest, kept) if kept else found


def _num_bytes(sources: Sequence[Path]) -> int:
    try:
        return sum(file.stat().st_size for file in sources if file.is_file())
    except OSError:
        return 0
