"""Many rows in one call: columns that are copied into the journal as they are.

A chunk is the columns of one call, one behind the other:

    u32 bytes of the chunk, u32 rows, u32 which columns hold a value for each row, bit by bit
    the columns, each with one value for all rows or one for each, little-endian
    u32 where the chunk begins in its segment

The last field is stored last, so only a whole chunk has it.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from stepscope.ingest.columns import Column, Table, Type
from stepscope.ingest.recording.forms.rows import FORMATS, NULLS, stored
from stepscope.ingest.recording.journal import Journal, Stopped
from stepscope.ingest.recording.row_streams import Segments
from stepscope.ingest.recording.segments import COLUMNS, HEADER_BYTES, Header

MOST_ROWS = 64 << 10
"""More are recorded in several chunks, so that each fits into a segment."""
HEAD = struct.Struct("<III")
MARKER = struct.Struct("<I")
_SAME = {"q": "ql", "i": "il", "d": "d", "I": "", "b": "b?"}
"""Formats of buffers that may be copied into a column of a format, where the width is its own."""


class Bulk(Segments):
    """Rows of these columns of a table, many at once: `put` takes one argument for each column.

    An argument is one value for all rows, or a sequence with one for each. Nothing raises: a call
    with a value that does not fit records no row, and all of its rows are counted.
    """

    def __init__(self, journal: Journal, table: Table, columns: Sequence[Column]) -> None:
        super().__init__(journal, table)
        self._given, self._columns = columns, stored(table, columns)
        self._required = table.required
        self._mapped: Any = bytearray()
        self._at = 0
        journal.add(self)

    def stop(self) -> None:
        """Let every further row find no place."""
        self._mapped, self._at = bytearray(), 0

    def header(self, size: int) -> Header:
        """Say what stands at the beginning of a segment of that size."""
        return Header(self.table, self._columns, {}, 0, COLUMNS)

    def put(self, *values: Any) -> None:
        """Record a row for each value of the sequences."""
        num_rows, start = 1, 0
        try:
            num_rows = _num_rows(values)
            for start in range(0, num_rows, MOST_ROWS):
                self._put_chunk(_part(values, start, num_rows), min(num_rows - start, MOST_ROWS))
        except Exception as error:
            with self._journal.lock:
                self._journal.drop(self.table, num_rows - start, error)

    def _put_chunk(self, values: Sequence[Any], num_rows: int) -> None:
        parts, each = [], 0
        if len(self._columns) > len(self._given):
            values = [*values, self._journal.next_seq()]
        for bit, (column, value) in enumerate(zip(self._columns, values, strict=True)):
            if _is_one(value):
                parts.append(self._packed(column, [value]).tobytes())
            else:
                each |= 1 << bit
                parts.append(self._bytes_of(column, value, num_rows))
        size = HEAD.size + sum(map(len, parts)) + MARKER.size
        with self._journal.lock:
            self._write(size, HEAD.pack(size, num_rows, each) + b"".join(parts))

    def _write(self, size: int, raw: bytes) -> None:
        if self._journal.stopped:
            raise Stopped
        if self._at + size > len(self._mapped):
            self._mapped, full = self.next_segment(size)
            self._at = HEADER_BYTES
            self.seal(full)
        at, end = self._at, self._at + len(raw)
        self._at = at + size
        self._mapped[at:end] = raw
        MARKER.pack_into(self._mapped, end, at)

    def _bytes_of(self, column: Column, value: Any, num_rows: int) -> bytes:
        if len(value) != num_rows:
            raise ValueError(f"{column.name} has {len(value)} values, others have {num_rows}")
        code = FORMATS[column.type]
        view = _view(value)
        if view and view.ndim == 1 and view.format in _SAME[code] and view.itemsize == _width(code):
            return view.tobytes()
        return self._packed(column, value).tobytes()

    def _packed(self, column: Column, values: Sequence[Any]) -> array[Any]:
        code = FORMATS[column.type]
        try:
            if column.type is Type.STR:
                return array(code, map(self._journal.strings.ids.__getitem__, values))
            return array(code, values)
        except (TypeError, KeyError):  # a null, or a text not seen before
            return array(code, [self._packable(column, value) for value in values])

    def _packable(self, column: Column, value: Any) -> Any:
        if value is None and column.name not in self._required:
            return NULLS[column.type]
        if column.type is not Type.STR:
            return value
        with self._journal.lock:
            return self._journal.strings.id_of(value)


def _is_one(value: Any) -> bool:
    """Whether it is one value for all rows."""
    return isinstance(value, str) or not hasattr(value, "__len__")


def _view(values: Any) -> memoryview | None:
    """The memory of a buffer; None of what is none."""
    if isinstance(values, (list, tuple)):
        return None
    with suppress(TypeError):
        return memoryview(values)
    return None


def _width(code: str) -> int:
    return struct.calcsize("<" + code)


def _num_rows(values: Sequence[Any]) -> int:
    return next((len(each) for each in values if not _is_one(each)), 1)


def _part(values: Sequence[Any], start: int, num_rows: int) -> Sequence[Any]:
    """What belongs to one chunk of the values of a call."""
    if num_rows <= MOST_ROWS:
        return values
    return [each if _is_one(each) else each[start : start + MOST_ROWS] for each in values]
