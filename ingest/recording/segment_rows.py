"""The rows in the bytes of a segment: those whose marker says that they were written whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from stepscope.ingest.columns import Column, Type
from stepscope.ingest.frames import DTYPES, polars_schema
from stepscope.ingest.recording.rows import FORMATS, NULLS, VOID
from stepscope.ingest.recording.segments import HEADER_BYTES, Header
from stepscope.ingest.schema import BY_NAME

_MARKER = "_marker"
_NUMPY = {"q": "<i8", "i": "<i4", "d": "<f8", "I": "<u4", "b": "i1"}
Texts = Callable[[Iterable[int]], list[str | None]]


class SegmentRows(NamedTuple):
    """Whole rows; places that are open, bytes in torn ones; and where the places end."""

    rows: pl.DataFrame
    num_open: int
    torn_bytes: int
    end: int


def rows_of(raw: bytes, header: Header, texts: Texts, rank: int) -> SegmentRows:
    """Take the whole rows of a segment; `texts` gives its strings by their ids."""
    places = _places(raw, header)
    expected = HEADER_BYTES + places.dtype.itemsize * np.arange(len(places), dtype=np.int64)
    is_row = places[_MARKER] == expected
    is_open = ~(is_row | (places[_MARKER] == expected ^ VOID))
    return SegmentRows(
        _frame(places[is_row], header, texts, rank),
        int(np.count_nonzero(is_open)),
        _num_bytes_in(places[is_open]),
        HEADER_BYTES + places.nbytes,
    )


def _places(raw: bytes, header: Header) -> np.ndarray[Any, Any]:
    formats = [(column.name, _NUMPY[FORMATS[column.type]]) for column in header.columns]
    layout = np.dtype([*formats, (_MARKER, "<u4")])
    room = max(len(raw) - HEADER_BYTES, 0) // layout.itemsize
    return np.frombuffer(raw, layout, min(room, header.num_places), HEADER_BYTES)


def _num_bytes_in(places: np.ndarray[Any, Any]) -> int:
    size = int(places.dtype.itemsize)
    flat = np.ascontiguousarray(places).view(np.uint8).reshape(len(places), size)
    return int(np.count_nonzero(flat.any(axis=1))) * size


def _frame(rows: np.ndarray[Any, Any], header: Header, texts: Texts, rank: int) -> pl.DataFrame:
    recorded = {each.name: _series(each, rows[each.name], texts) for each in header.columns}
    constants = {"rank": rank, **header.constants}
    schema = polars_schema(BY_NAME[header.table])
    return pl.DataFrame(
        [
            recorded[name]
            if name in recorded
            else pl.Series(name, [constants.get(name)], dtype).new_from_index(0, len(rows))
            for name, dtype in schema.items()
        ]
    )


def _series(column: Column, values: np.ndarray[Any, Any], texts: Texts) -> pl.Series:
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
