"""Rows that were recorded many at once: the whole chunks in the bytes of a segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from stepscope.ingest.recording.bulk import HEAD, MARKER, MOST_ROWS
from stepscope.ingest.recording.forms.rows import FORMATS
from stepscope.ingest.recording.forms.segment_rows import (
    NUMPY,
    Raw,
    Rows,
    SegmentRows,
    Texts,
    framed,
)
from stepscope.ingest.recording.segments import HEADER_BYTES, Header

Kinds = Sequence["np.dtype[Any]"]


def bulk_rows_of(raw: bytes, header: Header, texts: Texts, rank: int) -> SegmentRows:
    """Take the rows of the whole chunks of a segment; they end at the first that is not whole."""
    frame, end = bulk_rows_from(raw, HEADER_BYTES, header, texts, rank)
    torn = len(raw[end:].rstrip(b"\0"))
    return SegmentRows(frame, 0, torn, len(raw))


def bulk_rows_from(
    raw: Raw, at: int, header: Header, texts: Texts, rank: int
) -> tuple[pl.DataFrame, int]:
    """Take the rows of the whole chunks from a byte on, and give the byte behind the last."""
    kinds = [np.dtype(NUMPY[FORMATS[column.type]]) for column in header.columns]
    chunks: list[list[Rows]] = []
    end = at
    for chunk, behind in _chunks(raw, at, kinds):
        chunks.append(chunk)
        end = behind
    columns = zip(*chunks, strict=True) if chunks else ([np.empty(0, kind)] for kind in kinds)
    names = [column.name for column in header.columns]
    rows = dict(zip(names, map(np.concatenate, columns), strict=True))
    return framed(rows, header.columns, header, texts, rank), end


def _chunks(raw: Raw, at: int, kinds: Kinds) -> Iterator[tuple[list[Rows], int]]:
    """The columns of each chunk, and where the next one begins."""
    while at + HEAD.size + MARKER.size <= len(raw):
        size, num_rows, each = HEAD.unpack_from(raw, at)
        counts = [num_rows if each >> bit & 1 else 1 for bit in range(len(kinds))]
        num_bytes = sum(count * kind.itemsize for count, kind in zip(counts, kinds, strict=True))
        end = at + HEAD.size + num_bytes + MARKER.size
        is_fit = num_rows == 1 or (each and num_rows <= MOST_ROWS)
        is_whole = is_fit and end - at == size and end <= len(raw)
        if not is_whole or MARKER.unpack_from(raw, end - MARKER.size) != (at,):
            return
        yield list(_columns(raw, at + HEAD.size, num_rows, counts, kinds)), end
        at = end


def _columns(
    raw: Raw, at: int, num_rows: int, counts: Sequence[int], kinds: Kinds
) -> Iterator[Rows]:
    for count, kind in zip(counts, kinds, strict=True):
        column = np.frombuffer(raw, kind, count, at)
        yield column if count == num_rows else np.broadcast_to(column, num_rows)
        at += count * kind.itemsize
