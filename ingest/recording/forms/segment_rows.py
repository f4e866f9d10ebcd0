"""Rows one by one in the bytes of a segment: those whose marker says that they are whole."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from stepscope.ingest.columns import Column, Type
from stepscope.ingest.frames import DTYPES, polars_schema
from stepscope.ingest.recording.forms.rows import FORMATS, NULLS, VOID
from stepscope.ingest.recording.segments import HEADER_BYTES, Header
from stepscope.ingest.schema import BY_NAME

MARKER, LATER_MARKER = "_marker", "_later_marker"
NUMPY = {"q": "<i8", "i": "<i4", "d": "<f8", "I": "<u4", "b": "i1"}
Texts = Callable[[Iterable[int]], list[str | None]]
Rows = np.ndarray[Any, Any]
Raw = bytes | mmap.mmap


class SegmentRows(NamedTuple):
    """Whole rows; places that are open, bytes in torn ones; and where the places end."""

    rows: pl.DataFrame
    num_open: int
    torn_bytes: int
    end: int


def rows_of(raw: bytes, header: Header, texts: Texts, rank: int) -> SegmentRows:
    """Take the whole rows of a segment; `texts` gives its strings by their ids.

    A row that was to be completed and was not is open, too; what it lacks is null.
    """
    places = whole_places(raw, header)
    num_begun = 0
    if header.num_later:
        is_begun = places.rows[LATER_MARKER] != places.rows[MARKER]
        num_begun = int(np.count_nonzero(is_begun))
        for column in header.columns[-header.num_later :]:
            places.rows[column.name][is_begun] = NULLS[column.type]
    frame = framed(places.rows, header.columns, header, texts, rank)
    return SegmentRows(frame, places.num_open + num_begun, places.torn_bytes, places.end)


class Places(NamedTuple):
    """Whole rows as they lie in a segment, and what else is there."""

    rows: Rows
    num_open: int
    torn_bytes: int
    end: int


def whole_places(raw: bytes, header: Header) -> Places:
    """Take the places of a segment that hold a whole row."""
    places = places_in(raw, header)
    expected = HEADER_BYTES + places.dtype.itemsize * np.arange(len(places), dtype=np.int64)
    is_row = places[MARKER] == expected
    is_open = ~(is_row | (places[MARKER] == expected ^ VOID))
    return Places(
        places[is_row],
        int(np.count_nonzero(is_open)),
        _num_bytes_in(places[is_open]),
        HEADER_BYTES + places.nbytes,
    )


def framed(
    rows: Mapping[str, Rows] | Rows,
    columns: Sequence[Column],
    header: Header,
    texts: Texts,
    rank: int,
) -> pl.DataFrame:
    """Make a frame as the schema says of arrays of these columns, as they lie in a journal."""
    recorded = {each.name: _series(each, rows[each.name], texts) for each in columns}
    num_rows = len(next(iter(recorded.values())))
    constants = {"rank": rank, **header.constants}
    schema = polars_schema(BY_NAME[header.table])
    return pl.DataFrame(
        [
            recorded[name]
            if name in recorded
            else pl.Series(name, [constants.get(name)], dtype).new_from_index(0, num_rows)
            for name, dtype in schema.items()
        ]
    )


def places_in(raw: Raw, header: Header) -> Rows:
    """View all places of a segment, whether they hold a row or not, as they lie there."""
    formats = [(column.name, NUMPY[FORMATS[column.type]]) for column in header.columns]
    markers = [(LATER_MARKER, "<u4")] if header.num_later else []
    layout = np.dtype([*formats, *markers, (MARKER, "<u4")])
    room = max(len(raw) - HEADER_BYTES, 0) // layout.itemsize
    return np.frombuffer(raw, layout, min(room, header.num_places), HEADER_BYTES)


def _num_bytes_in(places: Rows) -> int:
    size = int(places.dtype.itemsize)
    flat = np.ascontiguousarray(places).view(np.uint8).reshape(len(places), size)
    return int(np.count_nonzero(flat.any(axis=1))) * size


def _series(column: Column, values: Rows, texts: Texts) -> pl.Series:
    if column.type is Type.STR:
        ids, places = np.unique(values, return_inverse=True)
        known = pl.Series(column.name, texts(ids.tolist()), pl.String)
        return known.gather(places)
    series = pl.Series(column.name, np.ascontiguousarray(values))
    if column.type is Type.F64:
        return series.fill_nan(None)
    is_null = series == int(NULLS[column.type])
    known = series.set(is_null, None) if is_null.any() else series
    return known.cast(DTYPES[column.type])
