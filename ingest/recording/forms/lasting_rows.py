"""Rows of batches that go on: each small row of a segment becomes the rows that it stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from stepscope.ingest.columns import Type
from stepscope.ingest.recording.forms.rows import NULLS
from stepscope.ingest.recording.forms.segment_rows import (
    NUMPY,
    Rows,
    SegmentRows,
    Texts,
    framed,
    whole_places,
)
from stepscope.ingest.recording.lasting import HEAD, MOST_CHANGES, NULL64, TOLD
from stepscope.ingest.recording.segments import Header
from stepscope.ingest.schema import BY_NAME

MOST_ROWS = 32 << 20
"""A segment that says more is damaged: a batch of 16,384 in each of its rows is less."""
DECODE = 0xFFFFFFFF
"""Stands for the phase of rows that go on, where ids of texts stand."""
Chunks = Callable[[int], bytes | None]
"""Gives the bytes that were written under an id; None where they are lost."""

_TOLD = np.dtype(
    [(name, NUMPY[code]) for name, code in zip(
        ("place", "request", "phase", "num_tokens", "num_computed", "position", "prompt_len",
         "num_cached", "slot", "num_draft", "num_accepted", "is_final_chunk", "is_recompute"),
        TOLD.format.lstrip("<"), strict=True,
    )]
)  # fmt: skip
_OF_ALL = ("step", "ts_ns", "seq")
"""Columns that are the same for all rows of a batch."""
_NULLS = {name: NULLS[kind] for name, kind in (
    ("num_cached", Type.I64), ("num_draft", Type.I32), ("num_accepted", Type.I32),
    ("is_final_chunk", Type.BOOL), ("is_recompute", Type.BOOL),
)}  # fmt: skip
"""Columns that hold for the step in which a row is told, and not for those that follow."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch as a change left it: its rows in that step, and how they go on from there."""

    counter: int
    now: Rows
    then: Rows


class Damaged(ValueError):
    """What the rows go back to is lost, or is not what a recorder writes."""


def lasting_rows_of(
    raw: bytes, header: Header, texts: Texts, chunks: Chunks, rank: int
) -> SegmentRows:
    """Take the rows that the whole rows of a segment stand for.

    Raises `Damaged` where that cannot be known.
    """
    places = whole_places(raw, header)
    frame = rows_stood_for(places.rows, header, texts, chunks, rank)
    return SegmentRows(frame, places.num_open, places.torn_bytes, places.end)


def rows_stood_for(
    small: Rows, header: Header, texts: Texts, chunks: Chunks, rank: int
) -> pl.DataFrame:
    """Give the rows that some small rows of a segment stand for; raises `Damaged`."""
    read = _Changes(chunks)
    batches = {number: read.batch(number) for number in np.unique(small["batch"]).tolist()}
    spans = _spans(small, batches)
    rows = _expanded(small, spans)
    if header.table == "outputs":
        gave = _gave(small, rows["position"], spans, chunks)
        rows = {name: values[gave] for name, values in rows.items()}
        rows["source_step"] = rows["step"]
    columns = [column for column in BY_NAME[header.table].columns if column.name in rows]
    return framed(rows, columns, header, _with_decode(texts), rank)


class _Changes:
    """Follows changes back to the one that is told whole, and keeps what came of each."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._known: dict[int, _Batch] = {}

    def batch(self, number: int) -> _Batch:
        """Give the batch that a change leaves; raises `Damaged`."""
        way: list[tuple[int, bytes]] = []
        while number and number not in self._known:
            raw = self._chunks(number)
            if raw is None or len(raw) < HEAD.size or len(way) > MOST_CHANGES:
                raise Damaged("a batch is lost")
            way.append((number, raw))
            number = HEAD.unpack_from(raw)[0]
        batch = self._known.get(number)
        for number, raw in reversed(way):
            batch = self._known[number] = _after(batch, raw)
        if batch is None:
            raise Damaged("a batch is lost")
        return batch


def _after(before: _Batch | None, raw: bytes) -> _Batch:
    """Give the batch after a change."""
    _, num_left, num_told, counter = HEAD.unpack_from(raw)
    if len(raw) != HEAD.size + 4 * num_left + TOLD.size * num_told:
        raise Damaged("a batch is not whole")
    left = np.frombuffer(raw, "<u4", num_left, HEAD.size)
    told = np.frombuffer(raw, _TOLD, num_told, HEAD.size + 4 * num_left)
    stay = before.then if before else np.empty(0, _TOLD)
    if num_left and left.max() >= len(stay):
        raise Damaged("a batch is not what it was")
    stay = np.delete(stay, left)
    num_rows = max(len(stay), int(told["place"].max()) + 1 if num_told else 0)
    if num_rows > len(stay) + num_told:
        raise Damaged("a batch is not what it was")
    then = np.zeros(num_rows, _TOLD)
    then[: len(stay)] = stay
    now = _at(then, counter)
    now[told["place"]] = told
    then[told["place"]] = _going_on(told, counter)
    return _Batch(counter, now, then)


def _going_on(told: Rows, counter: int) -> Rows:
    """How rows that were told at a step go on after it; what grows is less the counter."""
    then = told.copy()
    for name, grown in (("num_computed", told["num_tokens"] - counter - 1), ("position", -counter)):
        then[name] = np.where(told[name] == NULL64, NULL64, told[name] + grown)
    then["phase"], then["num_tokens"] = DECODE, 1
    for name, null in _NULLS.items():
        then[name] = null
    return then


def _at(then: Rows, counter: int | Rows) -> Rows:
    """Rows that go on, as they are at a step."""
    now = then.copy()
    for name in ("num_computed", "position"):
        now[name] = np.where(then[name] == NULL64, NULL64, then[name] + counter)
    return now


class _Spans(NamedTuple):
    """Which rows of a pool each small row stands for, and the counter that they lack."""

    pool: Rows
    first: Rows
    length: Rows
    counter: Rows


def _spans(rows: Rows, batches: Mapping[int, _Batch]) -> _Spans:
    pool = [np.empty(0, _TOLD)]
    places: dict[tuple[int, bool], tuple[int, int]] = {}
    end = 0
    for number, batch in batches.items():
        for is_then, part in ((False, batch.now), (True, batch.then)):
            places[number, is_then] = end, len(part)
            pool.append(part)
            end += len(part)
    numbers = rows["batch"].tolist()
    told = np.array([batches[number].counter for number in numbers], np.int64)
    is_then = rows["counter"] != told
    spans = [places[key] for key in zip(numbers, is_then.tolist(), strict=True)]
    first, length = np.array(spans, np.int64).reshape(-1, 2).T
    if length.sum() > MOST_ROWS:
        raise Damaged("more rows than a segment can stand for")
    return _Spans(np.concatenate(pool), first, length, np.where(is_then, rows["counter"], 0))


def _expanded(rows: Rows, spans: _Spans) -> dict[str, Rows]:
    """The columns of all rows that small rows stand for."""
    begins = np.cumsum(spans.length) - spans.length
    row = np.arange(spans.length.sum()) - np.repeat(begins, spans.length)
    pooled = spans.pool[np.repeat(spans.first, spans.length) + row]
    found = _at(pooled, np.repeat(spans.counter, spans.length))
    columns = {
        name: np.repeat(rows[name], spans.length)
        for name in _OF_ALL
        if name in (rows.dtype.names or ())
    }
    columns["row"] = row.astype(np.int32)
    return columns | {name: found[name] for name in _TOLD.names or () if name != "place"}


def _gave(rows: Rows, position: Rows, spans: _Spans, chunks: Chunks) -> Rows:
    """Which of the expanded rows gave an output."""
    gave: Rows = position != NULL64
    begins = np.cumsum(spans.length) - spans.length
    for at in np.flatnonzero(rows["without"]).tolist():
        raw = chunks(int(rows["without"][at]))
        if raw is None or len(raw) % 4:
            raise Damaged("it is lost which outputs there were")
        absent = np.frombuffer(raw, "<u4")
        gave[begins[at] + absent[absent < spans.length[at]]] = False
    return gave


def _with_decode(texts: Texts) -> Texts:
    """Give texts by their ids, and that of the phase in which requests go on."""

    def found(ids: Iterable[int]) -> list[str | None]:
        numbers = list(ids)
        known = iter(texts(number for number in numbers if number != DECODE))
        return ["decode" if number == DECODE else next(known) for number in numbers]

    return found
