"""A segment of a journal that is being written: its rows as they become whole, each once.

The file stays mapped while it is read, so what the process beside the engine compacts and removes
meanwhile is read to its end all the same.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from stepscope.ingest.recording.forms.bulk_rows import bulk_rows_from
from stepscope.ingest.recording.forms.lasting_rows import rows_stood_for
from stepscope.ingest.recording.forms.reading import Written
from stepscope.ingest.recording.forms.rows import NULLS, VOID
from stepscope.ingest.recording.forms.segment_rows import (
    LATER_MARKER,
    MARKER,
    Rows,
    framed,
    places_in,
)
from stepscope.ingest.recording.recovery import Loss, header_of
from stepscope.ingest.recording.segments import COLUMNS, HEADER_BYTES, LASTING, Header

BLOCK = 4096
"""Places that are looked at together; the writer leaves no gap of so many."""
MOST_WAITING = 1024
"""Places behind one that is not whole yet; it is no longer waited for when there are more."""


@dataclass(frozen=True, slots=True)
class Grown:
    """Rows of one segment since it was read last: `whole` will not change any more.

    `unfinished` are on record and wait for columns that come later: they come again when it is read
    the next time. `num_given_up` rows among the whole ones were not waited for any longer.
    """

    whole: pl.DataFrame | None = None
    unfinished: pl.DataFrame | None = None
    num_given_up: int = 0


class GrowingSegment:
    """Reads one segment; `num_rows` were taken of it so far, and will not be again."""

    def __init__(self, file: Path, written: Written, rank: int) -> None:
        self.num_rows = 0
        self._file, self._written, self._rank = file, written, rank
        self._raw: mmap.mmap | bytes = b""
        self._header: Header | None = None
        self._at = 0  # the next place, or the next byte of columns

    def take(self, *, is_last: bool = False) -> Grown:
        """Take what is new; `is_last` where nobody writes any more. Raises `OSError`, `ValueError`.

        A file that vanished before anything of it was read gives `FileNotFoundError`.
        """
        if not self.num_rows:
            self._map()
        if self._header is None:
            return Grown()
        if self._header.form == COLUMNS:
            grown = self._columns(self._header)
        else:
            grown = self._rows(self._header, is_last=is_last)
        self.num_rows += 0 if grown.whole is None else grown.whole.height
        return grown

    @property
    def is_read(self) -> bool:
        """Whether no further row finds a place in it."""
        header = self._header
        return header is not None and header.form != COLUMNS and self._at >= header.num_places

    def _map(self) -> None:
        """Map the file, which may not have its full size when it is seen first."""
        if len(self._raw) == self._file.stat().st_size:
            return
        with self._file.open("rb") as opened:
            raw = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        if not raw[:HEADER_BYTES].strip(b"\0"):
            return
        loss = Loss()
        header = header_of(raw[:HEADER_BYTES], self._file, loss)
        if header is None:
            raise ValueError(loss.notes[0])
        self._raw, self._header = raw, header
        self._at = HEADER_BYTES if header.form == COLUMNS else 0

    def _columns(self, header: Header) -> Grown:
        rows, self._at = bulk_rows_from(
            self._raw, self._at, header, self._written.texts, self._rank
        )
        return Grown(rows if rows.height else None)

    def _rows(self, header: Header, *, is_last: bool) -> Grown:
        places = places_in(self._raw, header)
        first, end = self._at, self._end(places)
        if first == end:
            return Grown()
        # Markers are read before what they say is whole.
        expected = _expected(places, first, end)
        markers = places[MARKER][first:end].copy()
        is_row = markers == expected
        is_settled = is_row | (markers == expected ^ VOID)
        later = places[LATER_MARKER][first:end].copy() if header.num_later else markers
        is_begun = is_row & (later != markers)
        rows = places[first:end].copy()
        for column in header.columns[-header.num_later :] if header.num_later else ():
            rows[column.name][is_begun] = NULLS[column.type]
        num = _num_settled(is_settled & ~is_begun, is_last=is_last)
        whole = rows[:num][is_row[:num]]
        rest = rows[num:][is_row[num:]]
        frames = self._framed(whole, header), self._framed(rest, header)
        self._at = first + num
        return Grown(*frames, int(np.count_nonzero(~is_settled[:num] | is_begun[:num])))

    def _end(self, places: Rows) -> int:
        """The place behind the last in which anything stands."""
        end = self._at
        for first in range(self._at, len(places), BLOCK):
            taken = np.flatnonzero(places[MARKER][first : first + BLOCK])
            if not len(taken):
                break
            end = first + int(taken[-1]) + 1
        return end

    def _framed(self, rows: Rows, header: Header) -> pl.DataFrame | None:
        if not len(rows):
            return None
        texts, rank = self._written.texts, self._rank
        if header.form == LASTING:
            return rows_stood_for(rows, header, texts, self._written.chunk, rank)
        return framed(rows, header.columns, header, texts, rank)


def _expected(places: Rows, first: int, end: int) -> Rows:
    size = places.dtype.itemsize
    expected: Rows = HEADER_BYTES + size * np.arange(first, end, dtype=np.int64)
    return expected.astype(np.uint32)


def _num_settled(is_settled: Rows, *, is_last: bool) -> int:
    """How many places from the first on will not change: all, where nobody writes any more."""
    if is_last or is_settled.all():
        return len(is_settled)
    return max(int(np.argmin(is_settled)), len(is_settled) - MOST_WAITING)
