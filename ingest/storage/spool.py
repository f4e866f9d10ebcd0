"""Long texts of a file that is being read, kept packed until someone asks for them.

The arguments of events are most of a profile, and alike: packed they are a tenth or less, so that
they mostly need neither much memory nor a file beside it, and are kept as they are. What is much
even so is put on disk as it comes: see docs/decisions/0133-a-file-larger-than-memory.md.
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import polars as pl

from stepscope.ingest.errors import ConfigError

Part = bytes | Path
IN_MEMORY_BYTES = 256 << 20
"""Packed texts of one file that are held in memory; those behind them are put on disk."""
_ROW = "row of the texts"


@dataclass(frozen=True, slots=True)
class Spooled:
    """Rows of a table without a text column, and that column packed: parts one after the other."""

    rows: pl.DataFrame
    column: str
    parts: Sequence[Part]

    def lazy(self) -> pl.LazyFrame:
        """All columns; only who asks for that one unpacks it."""
        return beside(self.rows.lazy(), unpacked(self.column, self.parts))

    def save(self, folder: Path) -> None:
        """Put the parts as they are into a new folder, in the order of their names."""
        folder.mkdir()
        for number, part in enumerate(self.parts):
            _put(part, folder / f"{number:06}.parquet")


class Spool:
    """Packed texts in the order in which they come: in memory, and on disk what is too much."""

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self._left = IN_MEMORY_BYTES
        self._folder: Path | None = None

    def add(self, parts: Iterable[Part]) -> None:
        """Put parts behind those before; in memory as well where there is no room on disk."""
        for part in parts:
            self.parts.append(part if isinstance(part, Path) else self._held(part))

    def _held(self, part: bytes) -> Part:
        self._left -= len(part)
        if self._left >= 0:
            return part
        try:
            self._folder = self._folder or _new_folder()
            file = self._folder / f"{len(self.parts):06}.parquet"
            file.write_bytes(part)
        except OSError:
            return part
        return file


_OPEN: list[tempfile.TemporaryDirectory[str]] = []
"""What goes when the process ends: rows that are read lazily need their texts until then."""


def _new_folder() -> Path:
    """A folder in the user's cache, which is swept after a crash; else where others have theirs."""
    from stepscope.ingest.storage.cache import users_cache  # noqa: PLC0415 - few files are so large

    try:
        cache = users_cache()
    except ConfigError:
        cache = None
    inside = cache.folder if cache and not cache.unusable() else None
    _OPEN.append(tempfile.TemporaryDirectory(".tmp", ".spool.", inside, ignore_cleanup_errors=True))
    return Path(_OPEN[-1].name)


def _put(part: Part, file: Path) -> None:
    if isinstance(part, bytes):
        file.write_bytes(part)
        return
    with suppress(OSError):  # the same bytes under a second name, where that can be
        os.link(part, file)
        return
    shutil.copyfile(part, file)


def packed(column: pl.Series) -> bytes:
    """A column as a Parquet file in memory."""
    file = io.BytesIO()
    column.to_frame().write_parquet(file, compression="zstd", compression_level=1, statistics=False)
    return file.getvalue()


def unpacked(name: str, parts: Sequence[Part]) -> pl.LazyFrame:
    """A text column of packed parts one after the other, unpacked as it is read."""
    if not parts:
        return pl.LazyFrame(schema={name: pl.String})
    runs: list[Any] = [[*run] for _, run in groupby(parts, type)]
    found = [pl.scan_parquet(run, glob=False, hive_partitioning=False) for run in runs]
    return found[0] if len(found) == 1 else pl.concat(found)


def beside(rows: pl.LazyFrame, texts: pl.LazyFrame) -> pl.LazyFrame:
    """Set as many texts beside rows; who asks for none of them reads none."""
    # Polars 2.1 reads all columns of a frame of which none is asked for, but for one that it
    # makes itself.
    return pl.concat([rows, texts.with_row_index(_ROW)], how="horizontal").drop(_ROW)
