"""What a writer has recorded since it was asked last, from its journal or compacted by now."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from stepscope.ingest.errors import TraceError
from stepscope.ingest.live.growing_segment import GrowingSegment
from stepscope.ingest.manifest import Writer
from stepscope.ingest.recording.recovery import (
    Loss,
    Strings,
    number_of,
    segment_files,
    table_of,
)
from stepscope.ingest.recording.segments import journal_folder
from stepscope.ingest.schema import BY_NAME, TABLES
from stepscope.ingest.storage.store import covered_numbers, num_rows, scan, whole_files

Frames = dict[str, list[pl.DataFrame]]


@dataclass(slots=True)
class Compacted:
    """A Parquet file of segments of which nothing has been read: its rows, and their last time."""

    table: str
    file: Path
    num_rows: int

    def last_ns(self) -> int | None:
        """When the last of its rows was."""
        found = scan(BY_NAME[self.table], [self.file]).select(pl.col("ts_ns").max()).collect()
        last_ns: int | None = found.item()
        return last_ns

    def rows(self) -> pl.DataFrame:
        """Read all of it."""
        return scan(BY_NAME[self.table], [self.file]).collect()


@dataclass(slots=True)
class News:
    """What came since the last time: rows by table, and what is wrong with others, by sentences.

    `unfinished` rows are told again the next time; of those that were `given_up` columns may be
    missing. `compacted` files hold rows that were recorded and compacted between two times, and
    `missed` rows are in files that hold others, too.
    """

    rows: Frames = field(default_factory=dict)
    unfinished: Frames = field(default_factory=dict)
    compacted: list[Compacted] = field(default_factory=list)
    missed: dict[str, int] = field(default_factory=dict)
    given_up: int = 0
    notes: list[str] = field(default_factory=list)


class LiveStrings:
    """The strings of a journal that grows; a new file is found when it is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen = self._files()
        self._strings = Strings(folder, Loss())

    def texts(self, ids: Iterable[int]) -> list[str | None]:
        """Give the strings of some ids; id 0 is null."""
        return [self._text(number) if number else None for number in ids]

    def chunk(self, number: int) -> bytes | None:
        """Give the bytes that were written under an id; None where they are lost."""
        raw = self._strings.chunk(number)
        if raw is None and (seen := self._files()) != self._seen:
            self._seen, self._strings = seen, Strings(self._folder, Loss())
            raw = self._strings.chunk(number)
        return raw

    def _text(self, number: int) -> str:
        raw = self.chunk(number)
        return f"lost-{number}" if raw is None else raw.decode("utf-8", "replace")

    def _files(self) -> list[tuple[str, int]]:
        """Names and sizes: a file may not have its full size when it is seen first."""
        with suppress(OSError), os.scandir(self._folder) as found:
            return sorted(
                (each.name, each.stat().st_size)
                for each in found
                if each.name.startswith("strings-")
            )
        return []


Key = tuple[str, int]
"""A segment by its table and number."""


class GrowingJournal:
    """Reads what one writer records, each row once, however it is compacted meanwhile."""

    def __init__(self, trace: Path, writer: Writer) -> None:
        self.folder = journal_folder(trace, writer)
        self._trace, self._writer = trace, writer
        self._strings = LiveStrings(self.folder)
        self._open: dict[Key, GrowingSegment] = {}
        self._read: dict[Key, int] = {}
        self._files: set[Path] = set()

    def take(self, news: News, *, is_last: bool = False) -> None:
        """Add what is new to `news`; `is_last` where nobody writes any more."""
        for file in segment_files(self.folder):
            key = table_of(file), number_of(file)
            if key not in self._open and key not in self._read:
                self._open[key] = GrowingSegment(file, self._strings, self._writer.rank)
        # Listed before segments are read: of what is compacted by now, the rest can be read.
        compacted = list(self._compacted())
        for key, segment in [*self._open.items()]:
            self._take_segment(key, segment, news, is_last=is_last)
        for table, file in compacted:
            self._take_file(table, file, news)

    def _take_segment(
        self, key: Key, segment: GrowingSegment, news: News, *, is_last: bool
    ) -> None:
        table = key[0]
        try:
            grown = segment.take(is_last=is_last)
        except FileNotFoundError:
            del self._open[key]  # compacted before anything of it was read
            return
        except (OSError, ValueError) as error:
            news.notes.append(f"{table}-{key[1]:06}.seg: {error}")
            self._done(key, segment)
            return
        if grown.whole is not None:
            news.rows.setdefault(table, []).append(grown.whole)
        if grown.unfinished is not None:
            news.unfinished.setdefault(table, []).append(grown.unfinished)
        news.given_up += grown.num_given_up
        if segment.is_read or is_last:
            self._done(key, segment)

    def _done(self, key: Key, segment: GrowingSegment) -> None:
        self._read[key] = segment.num_rows
        self._open.pop(key, None)

    def _compacted(self) -> Iterator[tuple[str, Path]]:
        """The Parquet files that were not seen before."""
        for table in TABLES:
            folder = self._trace / table.name / f"rank={self._writer}"
            for file in whole_files(folder):
                if file not in self._files:
                    yield table.name, file

    def _take_file(self, table: str, file: Path, news: News) -> None:
        """See to what a new Parquet file holds that no segment told."""
        keys = [(table, number) for number in covered_numbers([file])]
        for key in keys:
            if key in self._open:
                self._done(key, self._open[key])
        try:
            number = num_rows(file)
        except (OSError, pl.exceptions.PolarsError, TraceError):
            return  # merged into another by now, which is listed the next time
        self._files.add(file)
        told = sum(self._read.get(key, 0) for key in keys)
        if not told and number:
            news.compacted.append(Compacted(table, file, number))
        elif number > told:
            news.missed[table] = news.missed.get(table, 0) + number - told
        for key in keys:
            self._read.setdefault(key, 0)
        if keys:  # so that a file that is made of this one and others counts it once
            self._read[keys[0]] += max(number - told, 0)
