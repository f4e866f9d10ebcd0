"""The journal of one rank: rows and strings that are on record the moment they are written.

Everything lives in mapped files, so a killed process loses nothing (a machine that loses power
may). A string is whole in its file before the row that names it, and a row counts only once its
marker stands, which is stored last. Standard library only.
"""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from stepscope.ingest.columns import Column, Table, Type
from stepscope.ingest.recording.holding import hold
from stepscope.ingest.recording.rows import MISSING, NULLS, VOID, Segment, build_row, row_struct
from stepscope.ingest.recording.segments import (
    HEADER_BYTES,
    STRINGS_MAGIC,
    Header,
    make_segment,
    size_of,
)
from stepscope.ingest.schema import TABLES

REASON_BYTES = 256
TABLE_NAMES = tuple(table.name for table in TABLES)
TALLY_BYTES = REASON_BYTES + 8 * len(TABLES)
Sealed = Callable[["Stream", Path], None]


class Stopped(Exception):
    """Recording has stopped; the row at hand is dropped."""


class Journal:
    """What the streams of one rank share: folder, lock, strings, tally, and the end of it all.

    `sealed` is told of every segment that is full. Raises `OSError` where there is no room.
    """

    def __init__(self, folder: Path, sealed: Sealed) -> None:
        self.folder = folder
        self.lock = threading.RLock()
        self.sealed = sealed
        self.failed: str | None = None
        self.stopped = False
        self.tally = Tally(folder)
        self.strings = Strings(self)
        self.streams: list[Stream] = []
        self._numbers: dict[str, Iterator[int]] = {}
        self._held = hold(folder)

    def stream(
        self, table: Table, columns: Sequence[Column], constants: Mapping[str, str] | None = None
    ) -> Stream:
        """Begin a stream of rows that hold these columns of the table."""
        stream = Stream(self, table, columns, constants or {})
        self.streams.append(stream)
        return stream

    def next_number(self, name: str) -> int:
        """Count the segments of a table, over all its streams; takes no lock."""
        return next(self._numbers.setdefault(name, count()))

    def recorded(self) -> list[str]:
        """Name the tables that have a segment."""
        used = (stream.table.name for stream in self.streams if stream.is_used)
        return list(dict.fromkeys(used))

    def stop(self) -> None:
        """Record nothing from here on: every further row is dropped and counted."""
        with self.lock:
            self.stopped = True
            for stream in self.streams:
                stream.stop()

    def fail(self, reason: str) -> None:
        """Record nothing from here on, and keep the first reason for it."""
        self.stop()
        self.failed = self.failed or reason
        self.tally.note(reason)
        self.let_go()

    def let_go(self) -> None:
        """Say to whoever opens the folder that nothing more will be recorded in it."""
        held, self._held = self._held, None
        if held is not None:
            os.close(held)

    def disown(self) -> None:
        """Leave the files to the parent: this is a process that was forked off."""
        self.lock = threading.RLock()
        self.tally.detach()
        self.fail("this process was forked from the one that records")


class Tally:
    """Rows dropped per table, and why: kept in a mapped file, to be known after a crash too."""

    def __init__(self, folder: Path) -> None:
        self.dropped: dict[str, int] = {}
        self.reason = ""
        self._mapped: Segment = make_segment(folder / "tally", b"", TALLY_BYTES)

    def drop(self, table: str) -> None:
        """Count one row that is not recorded."""
        self.dropped[table] = self.dropped.get(table, 0) + 1
        place = REASON_BYTES + 8 * TABLE_NAMES.index(table)
        struct.pack_into("<Q", self._mapped, place, self.dropped[table])

    def note(self, reason: str) -> None:
        """Keep the first reason; later ones follow from it."""
        if not self.reason:
            self.reason = reason
            raw = reason.encode("utf-8", "replace")[:REASON_BYTES]
            self._mapped[: len(raw)] = raw

    def detach(self) -> None:
        """Go on counting in memory only."""
        self._mapped = bytearray(TALLY_BYTES)


class Strings:
    """Strings, each written once; an id is where the string stands, in units of 8 bytes.

    `ids` forgets all it knows when a segment is full, so its memory is bounded by one segment's;
    a string that comes again is then written again.
    """

    def __init__(self, journal: Journal) -> None:
        self.ids: dict[Any, int] = {}
        self._journal = journal
        self._mapped: Segment = bytearray()
        self._first, self._end = 0, 0

    def id_of(self, text: str | int) -> int:
        """Give the id of a string, which is whole in its file from then on; a number is spelt."""
        if isinstance(text, int):
            text = str(text)
        elif not isinstance(text, str):
            raise TypeError(f"{type(text).__name__} where a string belongs")
        return self.ids.get(text) or self._written(text)

    def _written(self, text: str) -> int:
        raw = text.encode("utf-8", "replace")
        size = -(-(8 + len(raw)) // 8) * 8
        if self._end + size > len(self._mapped):
            self._turn(size)
        at, self._end = self._end, self._end + size
        number, end = (self._first + at) // 8, at + 4 + len(raw)
        self._mapped[at:end] = len(raw).to_bytes(4, "little") + raw
        self._mapped[end : end + 4] = number.to_bytes(4, "little")
        self.ids[text] = number
        return number

    def _turn(self, size: int) -> None:
        number = self._journal.next_number("strings")
        first = self._first + len(self._mapped)
        header = STRINGS_MAGIC + struct.pack("<Q", first)
        room = max(size_of(number), -(-(len(header) + size) // 8) * 8)
        file = self._journal.folder / f"strings-{number:06}.seg"
        self._mapped = make_segment(file, header, room)
        self._first, self._end = first, len(header)
        self.ids.clear()


class Stream:
    """Rows of one table, one segment after another.

    `record` is the function that packs a row. A bad value costs its row and is counted; only a
    call without a required argument raises.
    """

    def __init__(
        self,
        journal: Journal,
        table: Table,
        columns: Sequence[Column],
        constants: Mapping[str, str],
    ) -> None:
        self.table = table
        self._journal = journal
        self._columns = columns
        self._constants = constants
        self._struct = row_struct(columns)
        self.record, self._claim, self._turn_to = build_row(
            table, columns, journal.strings.ids, self._mend
        )
        self._file: Path | None = None
        self._num_made = 0
        self._spare: tuple[Path, Segment] | None = None
        self._making = threading.Lock()

    def prepare(self) -> None:
        """Make the next segment before it is needed; raises `OSError` where there is no room."""
        with self._making:
            if self._spare is None and not self._journal.stopped:
                self._spare = self._made()

    @property
    def is_used(self) -> bool:
        """Whether a row was ever recorded."""
        return self._file is not None

    def stop(self) -> None:
        """Let every further row find no place."""
        self._turn_to(bytearray(), 0)

    def _mend(self, segment: Segment, at: int, row: tuple[Any, ...]) -> None:
        with self._journal.lock:
            try:
                segment, at = self._place(segment, at)
                values = [self._packable(c, v) for c, v in zip(self._columns, row, strict=True)]
                self._struct.pack_into(segment, at, *values, at)
            except Exception as error:
                self._drop(segment, at, error)
                if MISSING in row:
                    raise

    def _place(self, segment: Segment, at: int) -> tuple[Segment, int]:
        while at + self._struct.size > len(segment):
            segment, at = self._claim()
            if at + self._struct.size > len(segment):
                self._roll()
        return segment, at

    def _roll(self) -> None:
        if self._journal.stopped:
            raise Stopped
        sealed = self._file
        with self._making:
            self._file, mapped = self._spare or self._made()
            self._spare = None
        self._turn_to(mapped, HEADER_BYTES)
        if sealed:
            self._journal.sealed(self, sealed)

    def _drop(self, segment: Segment, at: int, error: Exception) -> None:
        end = at + self._struct.size
        if end <= len(segment):
            struct.pack_into("<I", segment, end - 4, at ^ VOID)
        self._journal.tally.drop(self.table.name)
        if isinstance(error, OSError):
            self._journal.fail(f"recording stopped: {error.strerror or error}")
        elif not isinstance(error, Stopped):
            self._journal.tally.note(f"{self.table.name}: {error}")

    def _made(self) -> tuple[Path, Segment]:
        number = self._journal.next_number(self.table.name)
        num_places = (size_of(self._num_made) - HEADER_BYTES) // self._struct.size
        self._num_made += 1
        header = Header(self.table.name, self._columns, self._constants, num_places)
        file = self._journal.folder / f"{self.table.name}-{number:06}.seg"
        size = HEADER_BYTES + num_places * self._struct.size
        return file, make_segment(file, header.to_bytes(), size)

    def _packable(self, column: Column, value: Any) -> Any:
        if value is MISSING:
            raise TypeError(f"{self.table.name}() needs {column.name}")
        if value is None and column.name not in self.table.required:
            return NULLS[column.type]
        return self._journal.strings.id_of(value) if column.type is Type.STR else value
