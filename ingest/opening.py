"""Reading a file of whatever format, or taking what is cached of reading it before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stepscope.ingest.frames import Frame, conformed
from stepscope.ingest.limits import Limits
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.progress import Progress
from stepscope.ingest.storage.spool import Spooled

if TYPE_CHECKING:
    from stepscope.ingest.storage.cache import Cache
    from stepscope.ingest.storage.cached_tables import CachedTables
    from stepscope.ingest.storage.late_tables import LateTables

WORTH_BYTES = 128 << 10
"""A smaller file is read in tens of milliseconds, about what tables on disk cost more to check."""
LATE_BYTES = 64 << 20
"""What a larger file holds takes tenths of a second to be written, and is used before it is."""
HELD_BYTES = 512 << 20
"""Rows of more bytes do not stay in memory, but are read from the cache."""


@dataclass(frozen=True, slots=True)
class Found:
    """Tables as the schema says, and manifest; the tables can be read while `in_cache` lives.

    `held` are those whose rows are in memory as a reader left them, with Enums for text.
    """

    frames: Mapping[str, pl.LazyFrame]
    manifest: Manifest
    in_cache: CachedTables | LateTables | None = None
    held: Mapping[str, pl.LazyFrame] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where what is read of some files is cached."""

    cache: Cache
    key: str

    def found(self) -> Found | None:
        """What is there, if anything."""
        from stepscope.ingest.storage.cached_tables import CachedTables  # noqa: PLC0415 - a small file needs none

        tables = self.cache.find(f"{self.key}.trace", CachedTables)
        return Found(tables.frames, tables.manifest, tables) if tables else None

    def keep(self, frames: Mapping[str, Frame], manifest: Manifest) -> Found | None:
        """Write what was read there, and give what is there then."""
        from stepscope.ingest.storage.cached_tables import write_tables  # noqa: PLC0415 - the same

        self.cache.keep(f"{self.key}.trace", lambda folder: write_tables(folder, frames, manifest))
        return self.found()

    def keep_later(self, frames: Mapping[str, Frame], manifest: Manifest) -> LateTables:
        """Write what was read there when it is no longer waited for."""
        from stepscope.ingest.storage.late_tables import LateTables  # noqa: PLC0415 - few are so large

        return LateTables(self.key, frames, partial(self.keep, frames, manifest))


def read(path: Path, progress: Progress | None, limits: Limits, *, cached: bool = True) -> Found:
    """Read a file or directory, or what is cached of it; raises `TraceError`."""
    # Readers take longer to import than a cached file to open. Most read nothing but the file,
    # which is then known without asking one.
    place = _place(path, [path], limits) if cached else None
    if place and (found := place.found()):
        return found
    from stepscope.ingest.readers import reader_of  # noqa: PLC0415 - what is cached needs none

    reader = reader_of(path)
    sources = reader.sources(path) if cached else []
    if sources != [path]:
        place = _place(path, sources, limits)
        if place and (found := place.found()):
            return found
    frames, manifest = reader.read(path, progress, limits)
    # What is being written while it is read is not cached.
    if not (place and place == _place(path, reader.sources(path), limits)):
        return Found(conformed(frames), manifest)
    if _num_bytes(sources) > LATE_BYTES and _are_held(frames):
        late = place.keep_later(frames, manifest)
        return Found(conformed(frames), manifest, late, conformed(frames, keep_enums=True))
    # What is in the cache need not stay in memory.
    return place.keep(frames, manifest) or Found(conformed(frames), manifest)


def _are_held(frames: Mapping[str, Frame]) -> bool:
    """Whether all rows are in memory, and may stay there."""
    rows = [each.rows if isinstance(each, Spooled) else each for each in frames.values()]
    held = [each.estimated_size() for each in rows if isinstance(each, pl.DataFrame)]
    return len(held) == len(rows) and sum(held) <= HELD_BYTES


def _place(path: Path, sources: Sequence[Path], limits: Limits) -> _Place | None:
    """Where what these files hold is cached; None where they are small or nothing can be cached."""
    if _num_bytes(sources) <= WORTH_BYTES:
        return None
    from stepscope.ingest.storage.cache import users_cache  # noqa: PLC0415 - a small file needs none
    from stepscope.ingest.storage.cache_key import key_of  # noqa: PLC0415 - the same

    cache = users_cache()
    key = key_of(path, sources, limits) if cache and not cache.unusable() else None
    return _Place(cache, key) if cache and key else None


def _num_bytes(sources: Sequence[Path]) -> int:
    try:
        return sum(file.stat().st_size for file in sources if file.is_file())
    except OSError:
        return 0
