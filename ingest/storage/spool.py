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
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from threading import Lock
from typing import Any

import polars as pl

from stepscope.ingest.errors import ConfigError

Part = bytes | Path
IN_MEMORY_BYTES = 256 << 20
"""Packed texts of one file that are held in memory; those behind them are put on disk."""
MOST_WAITING_BYTES = 192 << 20
"""Texts of one file that wait until a core has time to pack them."""
_ROW = "row of the texts"


@dataclass(frozen=True, slots=True)
class Spooled:
    """Rows of a table without a text column, and that column packed: parts one after the other."""

    rows: pl.DataFrame
    column: str
    parts: Iterable[Part]

    def lazy(self) -> pl.LazyFrame:
        """All columns; only who asks for that one unpacks it."""
        return beside(self.rows.lazy(), unpacked(self.column, self.parts))

    def save(self, folder: Path) -> None:
        """Put the parts as they are into a new folder, in the order of their names."""
        folder.mkdir()
        for number, part in enumerate(self.parts):
            _put(part, folder / f"{number:06}.parquet")


class Spool:
    """Packed texts in the order in which they come: in memory, and on disk what is too much.

    Texts may wait to be packed: while a file is read all cores are busy, and afterwards not all.
    """

    def __init__(self, *waiting: pl.Series) -> None:
        self._parts: list[Part] = []
        self._left = IN_MEMORY_BYTES
        self._folder: Path | None = None
        self._waiting = deque(waiting)
        self._packing = Lock()
        self._ahead: Future[None] | None = None

    def __iter__(self) -> Iterator[Part]:
        """Give all parts, packing those that wait."""
        return iter(self.parts)

    @property
    def parts(self) -> list[Part]:
        """All parts; those that wait are packed."""
        if self._ahead is not None:
            self._ahead.result()  # raises what went wrong there
        self._pack()
        return self._parts

    def add(self, parts: Iterable[Part]) -> None:
        """Put parts behind those before; in memory as well where there is no room on disk."""
        self._pack()
        for part in parts:
            self._parts.append(part if isinstance(part, Path) else self._held(part))

    def add_texts(self, *columns: pl.Series) -> None:
        """Put columns behind what was before, to be packed by and by."""
        self._waiting.extend(columns)
        if self._ahead is None:
            self._pack(MOST_WAITING_BYTES)

    def take(self, other: Spool) -> None:
        """Put what another has behind what was before; it must not be used on."""
        if other._parts:
            self.add(other._parts)
        self.add_texts(*other._waiting)

    def pack_ahead(self) -> None:
        """Pack in a thread what waits, while the caller goes on."""
        with_one = ThreadPoolExecutor(1)
        self._ahead = with_one.submit(self._pack)
        with_one.shutdown(wait=False)

    def _pack(self, most_waiting: int = 0) -> None:
        """Pack the first of what waits, until no more than so many bytes do."""
        with self._packing:
            while self._waiting and sum(map(_num_bytes, [*self._waiting])) > most_waiting:
                self._parts.append(self._held(packed(self._waiting.popleft())))

    def _held(self, part: bytes) -> Part:
        self._left -= len(part)
        if self._left >= 0:
            return part
        try:
            self._folder = self._folder or _new_folder()
            file = self._folder / f"{len(self._parts):06}.parquet"
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


def _num_bytes(column: pl.Series) -> int:
    return int(column.estimated_size()) or 1


def packed(column: pl.Series) -> bytes:
    """A column as a Parquet file in memory."""
    file = io.BytesIO()
    column.to_frame().write_parquet(file, compression="zstd", compression_level=1, statistics=False)
    return file.getvalue()


def unpacked(name: str, parts: Iterable[Part]) -> pl.LazyFrame:
    """A text column of packed parts one after the other, unpacked as it is read."""
    runs: list[Any] = [[*run] for _, run in groupby(parts, type)]
    if not runs:
        return pl.LazyFrame(schema={name: pl.String})
    found = [pl.scan_parquet(run, glob=False, hive_partitioning=False) for run in runs]
    return found[0] if len(found) == 1 else pl.concat(found)


def beside(rows: pl.LazyFrame, texts: pl.LazyFrame) -> pl.LazyFrame:
    """Set as many texts beside rows; who asks for none of them reads none."""
    # Polars 2.1 reads all columns of a frame of which none is asked for, but for one that it
    # makes itself.
    return pl.concat([rows, texts.with_row_index(_ROW)], how="horizontal").drop(_ROW)
