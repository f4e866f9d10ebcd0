"""Rows of one table on their way into the journal: one after the other, in segments."""

from __future__ import annotations

import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepscope.ingest.columns import Column, Table, Type
from stepscope.ingest.recording.forms.rows import (
    MISSING,
    NULLS,
    VOID,
    Opened,
    Place,
    RowFunctions,
    Segment,
    build_row,
    build_row_in_two,
    later_offset,
    later_struct,
    row_struct,
    stored,
)
from stepscope.ingest.recording.journal import Journal, Stopped
from stepscope.ingest.recording.segments import (
    HEADER_BYTES,
    LASTING,
    LASTING_BYTES,
    ROWS,
    Header,
    make_segment,
    size_of,
)

MARKER = struct.Struct("<I")


class Segments(ABC):
    """The segments of one stream: the next one is made before it is needed, where there is time."""

    stands_for_many = False

    def __init__(self, journal: Journal, table: Table) -> None:
        self.table = table.name
        self._journal = journal
        self._file: Path | None = None
        self._num_made = 0
        self._spare: tuple[Path, Segment] | None = None
        self._making = threading.Lock()

    @property
    def is_used(self) -> bool:
        """Whether a row was ever recorded."""
        return self._file is not None

    def prepare(self) -> None:
        """Make the next segment before it is needed; raises `OSError` where there is no room."""
        with self._making:
            if self._spare is None and not self._journal.stopped:
                self._spare = self._made(0)

    @abstractmethod
    def stop(self) -> None:
        """Let every further row find no place."""

    def num_unfinished(self) -> int:
        """Count the rows that had a place when the stream was stopped, and are not whole yet."""
        return 0

    def drop_unfinished(self) -> int:
        """Mark those rows as dropped; return how many they were."""
        return 0

    def disown(self) -> None:  # noqa: B027 - most streams have no such rows
        """Leave those rows to the parent: this is a process that was forked off."""

    @abstractmethod
    def header(self, size: int) -> Header:
        """Say what stands at the beginning of a segment of that size."""

    def next_size(self, number: int) -> int:
        """Give the size of the n-th segment of the stream."""
        return size_of(number)

    def next_segment(self, at_least: int = 0) -> tuple[Segment, Path | None]:
        """Turn to the next segment, with room for so many bytes; give the one that is full, too."""
        if self._journal.stopped:
            raise Stopped
        full = self._file
        with self._making:
            spare, self._spare = self._spare, None
            if spare and len(spare[1]) < HEADER_BYTES + at_least:
                spare[0].unlink(missing_ok=True)
                spare = None
            self._file, mapped = spare or self._made(at_least)
        return mapped, full

    def seal(self, full: Path | None) -> None:
        """Tell of a segment that is full."""
        if full:
            self._journal.sealed(self, full)

    def _made(self, at_least: int) -> tuple[Path, Segment]:
        number = self._journal.next_number(self.table)
        size = max(self.next_size(self._num_made), HEADER_BYTES + at_least)
        self._num_made += 1
        file = self._journal.folder / f"{self.table}-{number:06}.seg"
        return file, make_segment(file, self.header(size).to_bytes(), size)


class Rows(Segments):
    """Rows of one width, packed by `record`, or many in a call by `more`, which takes the columns
    that are the `same` in all of these, and tuples of those that are not (`each`).

    A bad value costs its row and is counted; only a call without a required argument raises.
    `later` columns are completed afterwards: `more` does that where there are such. A row of a
    lasting form stands for as many rows of the table as its last value says.
    """

    def __init__(
        self,
        journal: Journal,
        table: Table,
        columns: Sequence[Column],
        constants: Mapping[str, str] | None = None,
        later: Sequence[Column] = (),
        form: str = ROWS,
        same: Sequence[str] = (),
        each: Sequence[str] = (),
    ) -> None:
        super().__init__(journal, table)
        self._same, self._each = same, each
        self._given, self._columns = columns, stored(table, columns)
        self._later, self._constants = later, constants or {}
        self._required, self._form = table.required, form
        self.stands_for_many = form == LASTING
        self._struct = row_struct(self._columns, later)
        self._empty = (*(NULLS[column.type] for column in later), 0) if later else ()
        self._at: Place = [bytearray(), 0]
        self._stopped_at: Place | None = None
        self.record, self.more = self._built(table)
        journal.add(self)

    def stop(self) -> None:
        """Let every further row find no place."""
        place, nothing = self._at, (bytearray(), 0)
        # No thread takes a place between these two lines: there is no call in them.
        segment, at = place
        place[:] = nothing
        if len(segment):
            self._stopped_at = [segment, at]

    def num_unfinished(self) -> int:
        """Count the rows that had a place when the stream was stopped, and are not whole yet."""
        return sum(1 for _ in self._unfinished())

    def drop_unfinished(self) -> int:
        """Mark those rows as dropped; return how many they were."""
        unfinished = [*self._unfinished()]
        for segment, at in unfinished:
            self._mark_void(segment, at)
        self._stopped_at = None
        return len(unfinished)

    def disown(self) -> None:
        """Leave those rows to the parent: this is a process that was forked off."""
        self._stopped_at = None

    def header(self, size: int) -> Header:
        """Say what stands at the beginning of a segment of that size."""
        return Header(
            self.table, [*self._columns, *self._later], self._constants,
            (size - HEADER_BYTES) // self._struct.size, self._form, len(self._later),
        )  # fmt: skip

    def next_size(self, number: int) -> int:
        """Give the size of the n-th segment of the stream: whole rows, and no more."""
        most = LASTING_BYTES if self._form == LASTING else size_of(number)
        num_places = (min(most, size_of(number)) - HEADER_BYTES) // self._struct.size
        return HEADER_BYTES + num_places * self._struct.size

    def _built(self, table: Table) -> RowFunctions:
        ids, count = self._journal.strings.ids, self._journal.next_seq
        if not self._later:
            return build_row(
                self._at, table, self._columns, ids, self._mend, count, self._same, self._each
            )
        return build_row_in_two(
            self._at, table, self._columns, self._later, ids, self._mend, self._amend, count
        )

    def _mend(self, segment: Segment, at: int, row: tuple[Any, ...], seq: int | None) -> Opened:
        with self._journal.lock:
            try:
                if self._journal.stopped:
                    raise Stopped
                segment, at = self._place(segment, at)
                values = self._packable(self._given, row)
                if len(self._columns) > len(self._given):
                    values.append(self._journal.next_seq() if seq is None else seq)
                self._struct.pack_into(segment, at, *values, *self._empty, at)
            except Exception as error:
                self._drop(segment, at, row, error)
                if any(value is MISSING for value in row) and not isinstance(error, Stopped):
                    raise
                return None
            return segment, at

    def _amend(self, opened: Opened, row: tuple[Any, ...]) -> None:
        if opened is None:
            return  # the row itself was dropped, and counted
        segment, at = opened
        with self._journal.lock:
            try:
                if self._journal.stopped:
                    raise Stopped
                values = self._packable(self._later, row)
                place = at + later_offset(self._columns)
                later_struct(self._later).pack_into(segment, place, *values, at)
            except Exception as error:
                self._count(1, error)

    def _place(self, segment: Segment, at: int) -> tuple[Segment, int]:
        while at + self._struct.size > len(segment):
            segment, at = self._claimed()
            if at + self._struct.size > len(segment):
                fresh, full = self.next_segment()
                self._at[:] = fresh, HEADER_BYTES
                self.seal(full)
        return segment, at

    def _claimed(self) -> tuple[Segment, int]:
        segment, at = self._at
        self._at[1] = at + self._struct.size
        return segment, at

    def _drop(self, segment: Segment, at: int, row: tuple[Any, ...], error: Exception) -> None:
        if self._mark_void(segment, at):
            return  # `drop_unfinished` has counted it
        self._count(row[-1] if self._form == LASTING else 1, error)

    def _mark_void(self, segment: Segment, at: int) -> bool:
        """Mark a place as that of a dropped row; tell whether it was marked before."""
        end = at + self._struct.size
        if end > len(segment):
            return False
        before: int = MARKER.unpack_from(segment, end - MARKER.size)[0]
        MARKER.pack_into(segment, end - MARKER.size, at ^ VOID)
        return before == at ^ VOID

    def _unfinished(self) -> Iterator[tuple[Segment, int]]:
        """Find the places without a marker in the last segment."""
        if self._stopped_at is None:
            return
        segment, end = self._stopped_at
        size = self._struct.size
        num_places = (min(end, len(segment)) - HEADER_BYTES) // size
        raw = segment[HEADER_BYTES : HEADER_BYTES + num_places * size]
        at = HEADER_BYTES
        for (marker,) in struct.iter_unpack(f"<{size - MARKER.size}xI", raw):
            if marker not in (at, at ^ VOID):
                yield segment, at
            at += size

    def _count(self, num_rows: int, error: Exception) -> None:
        self._journal.drop(self.table, num_rows, error)

    def _packable(self, columns: Sequence[Column], row: tuple[Any, ...]) -> list[Any]:
        """Values as they are packed: of a text that is new its id, once it is written."""
        id_of, required, packed = self._journal.strings.id_of, self._required, []
        for column, value in zip(columns, row, strict=True):
            if value is MISSING:
                raise TypeError(f"{self.table}() needs {column.name}")
            if value is None and column.name not in required:
                packed.append(NULLS[column.type])
            else:
                packed.append(id_of(value) if column.type is Type.STR else value)
        return packed
