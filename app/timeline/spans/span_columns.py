"""The columns of a section's spans, put together part by part, so that few are there unpacked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.packed import Bytes, Ints, Packed, packed_parts
from stepscope.app.timeline.spans.piles import InMemory, Piles, mapped
from stepscope.app.timeline.spans.start_index import StartIndex

PER_BLOCK = 16
"""Spans of a block: their starts and lengths are packed together, and the totals before it kept."""
REFS = 64
"""Rows that are packed together."""
BLOCKS_AT_ONCE = 1 << 16
UNPACKED = ("offsets", "state", "table", "kinds", "totals", "heads_before")
PACKED = ("starts", "lengths", "ref")
FOLLOWS = {"starts": PER_BLOCK, "lengths": PER_BLOCK, "ref": REFS}


@dataclass(frozen=True, slots=True)
class Columns:
    """Spans ordered by lane and start: `offsets[i]:offsets[i + 1]` are those of lane i.

    `state` goes on to the end of the last block. `totals` [blocks, kinds] are the busy time of each
    of `kinds` before each block, from the section's first; uint32 where no pixel can hold 2**32 ns:
    differences of totals that wrapped around are right. `heads_before` is of `StartIndex.counted`.
    """

    offsets: Ints
    starts: Packed
    lengths: Packed
    state: Bytes
    table: Bytes
    ref: Packed
    kinds: Bytes
    totals: npt.NDArray[Any]
    heads_before: Ints

    def in_states(self, state: Bytes) -> Columns:
        """The same spans in other states."""
        padded = np.zeros(len(self.state), np.uint8)
        padded[: len(state)] = state
        kinds = np.unique(state)
        parts = _totals(self.lengths, padded, kinds, self.totals.dtype)
        none = np.zeros((0, len(kinds)), self.totals.dtype)
        totals = np.concatenate([none, *parts])
        return replace(self, state=padded, kinds=kinds, totals=totals)

    @property
    def num_bytes(self) -> int:
        """How many bytes all arrays have."""
        whole = sum(getattr(self, name).nbytes for name in UNPACKED if name != "table")
        packed = (getattr(self, name) for name in PACKED)
        told = self.table.nbytes if self.table.strides != (0,) else 1
        parts = (part.nbytes for each in packed for part in (each.base, each.first, each.rows))
        return int(whole + told + sum(parts))


class ColumnsBuilder:
    """Takes spans part by part, each of whole lanes, ordered by lane and start."""

    def __init__(self, name: str = "", piles: Piles | None = None) -> None:
        self._name, self._piles = name, piles or InMemory()
        self._num_spans = 0
        self._num_rows = dict.fromkeys(PACKED, 0)
        self._left: dict[str, npt.NDArray[Any]] = {}
        self._counts: list[Ints] = []
        self._table: int | None = None
        self._is_seen = np.zeros(256, np.bool_)
        self._earliest, self._latest = np.iinfo(np.int64).max, np.iinfo(np.int64).min

    def add(self, spans: pl.DataFrame, counts: Ints) -> None:
        """Put spans behind those before; `counts` says how many are on each lane that follows."""
        self._counts.append(counts)
        if not len(spans):
            return
        start, end = spans["start"].to_numpy(), spans["end"].to_numpy()
        self._earliest = min(self._earliest, int(start.min()))
        self._latest = max(self._latest, int(end.max()))
        self._add_tables(spans["table"].to_numpy())
        self._num_spans += len(spans)
        self._see(spans["state"].to_numpy())
        found = {
            "starts": start, "lengths": end - start, "state": spans["state"].to_numpy(),
            "ref": spans["ref"].to_numpy(),
        }  # fmt: skip
        found = self._filled_up(found)
        whole = len(found["starts"]) // REFS * REFS
        if whole < len(found["starts"]):
            self._left = {name: array[whole:].copy() for name, array in found.items()}
        self._pack({name: array[:whole] for name, array in found.items()})

    def whole(self, num_lanes: int) -> Columns:
        """All columns, once the last part is there."""
        if self._left:
            short = -len(self._left["state"]) % PER_BLOCK
            self._left["state"] = np.concatenate((self._left["state"], np.zeros(short, np.uint8)))
            self._pack(self._left)
        counts = np.concatenate([np.zeros(0, np.int64), *self._counts])
        counts = np.concatenate((counts, np.zeros(num_lanes - len(counts), np.int64)))
        offsets = np.concatenate(([0], np.cumsum(counts)))
        starts, lengths, ref = (self._packed(name) for name in PACKED)
        state = self._whole("state", np.zeros(0, np.uint8))
        kinds = np.flatnonzero(self._is_seen).astype(np.uint8)
        extent_ns = max(0, self._latest - self._earliest)
        dtype = np.dtype(np.uint32 if extent_ns < 2**32 else np.int64)
        for part in _totals(lengths, state, kinds, dtype):
            self._add("totals", part)
        heads = StartIndex.counted(starts.base, -(-offsets // PER_BLOCK))
        for name, array in (("offsets", offsets), ("kinds", kinds), ("heads_before", heads)):
            self._add(name, array)
        return Columns(
            self._whole("offsets", offsets), starts, lengths, state, self._tables(), ref,
            self._whole("kinds", kinds),
            self._whole("totals", np.zeros((0, len(kinds)), dtype)),
            self._whole("heads_before", heads),
        )  # fmt: skip

    def _see(self, state: Bytes) -> None:
        """Note which states there are: to compare bytes with one takes less than to sort them."""
        for kind in range(int(state.min()), int(state.max()) + 1):
            self._is_seen[kind] = self._is_seen[kind] or (state == kind).any()

    def _filled_up(self, found: dict[str, npt.NDArray[Any]]) -> dict[str, npt.NDArray[Any]]:
        """Put to what was left so much that it is whole, and give the rest."""
        if not self._left:
            return found
        short = REFS - len(self._left["state"])
        whole = {name: np.concatenate((self._left[name], found[name][:short])) for name in found}
        self._left = {}
        if len(whole["state"]) < REFS:
            return whole
        self._pack(whole)
        return {name: array[short:] for name, array in found.items()}

    def _pack(self, found: dict[str, npt.NDArray[Any]]) -> None:
        if len(found["state"]):
            self._add("state", found["state"])
        for name in PACKED:
            for base, width, rows in packed_parts(
                found[name], FOLLOWS[name], from_least=name != "starts"
            ):
                self._add(f"{name}.base", base)
                first = self._num_rows[name] + np.cumsum(width, dtype=np.int64) - width
                self._add(f"{name}.first", first.astype(np.uint32))
                self._add(f"{name}.rows", rows)
                self._num_rows[name] += len(rows)
                assert self._num_rows[name] < 2**32

    def _packed(self, name: str) -> Packed:
        self._add(f"{name}.first", np.array([self._num_rows[name]], np.uint32))
        return Packed(
            self._num_spans,
            self._whole(f"{name}.base", np.zeros(0, np.int64)),
            self._whole(f"{name}.first", np.zeros(1, np.uint32)),
            self._whole(f"{name}.rows", np.zeros((0, FOLLOWS[name]), np.uint8)),
        )

    def _add_tables(self, table: Bytes) -> None:
        """Spans are mostly of one table: then it is kept once."""
        if self._table is None and not self._num_spans:
            self._table = int(table[0])
        if self._table is not None and (table == self._table).all():
            return
        if self._table is not None:
            if self._num_spans:
                self._add("table", np.full(self._num_spans, self._table, np.uint8))
            self._table = None
        self._add("table", table)

    def _tables(self) -> Bytes:
        if self._table is None:
            return self._whole("table", np.zeros(0, np.uint8))
        self._add("table", np.array([self._table], np.uint8))
        return np.broadcast_to(self._whole("table", np.zeros(1, np.uint8)), self._num_spans)

    def _add(self, name: str, part: npt.NDArray[Any]) -> None:
        self._piles.add(f"{self._name}{name}", part)

    def _whole(self, name: str, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return self._piles.whole(f"{self._name}{name}", like)


def mapped_columns(folder: Path, name: str, num_spans: int, types: dict[str, Any]) -> Columns:
    """Map what a builder of this name wrote on disk."""

    def array(of: str) -> npt.NDArray[Any]:
        dtype, width = types[f"{name}{of}"]
        return mapped(folder, f"{name}{of}", dtype, width)

    found: dict[str, Any] = {each: array(each) for each in UNPACKED}
    if len(found["table"]) == 1:
        found["table"] = np.broadcast_to(found["table"], num_spans)
    for each in PACKED:
        parts = (array(f"{each}.{part}") for part in ("base", "first", "rows"))
        found[each] = Packed(num_spans, *parts)
    return Columns(**found)


def of_frame(spans: pl.DataFrame, num_lanes: int) -> Columns:
    """The columns of spans ordered by lane and start."""
    built = ColumnsBuilder()
    built.add(spans, np.bincount(spans["lane"].to_numpy(), minlength=num_lanes))
    return built.whole(num_lanes)


def _totals(
    lengths: Packed, state: Bytes, kinds: Bytes, dtype: np.dtype[Any]
) -> Iterator[npt.NDArray[Any]]:
    """Before each block the busy time of each kind, some blocks at a time."""
    if compiled.IS_COMPILED:
        yield from _added_up(lengths, state, kinds, dtype)
        return
    sofar = np.zeros(len(kinds), dtype)
    states = state.reshape(-1, PER_BLOCK)
    for begin in range(0, len(states), BLOCKS_AT_ONCE):
        some = states[begin : begin + BLOCKS_AT_ONCE]
        block = np.arange(begin, begin + len(some))
        took = lengths.blocks(block).astype(dtype)
        if begin + len(some) == len(states):
            took.reshape(-1)[len(lengths) - begin * PER_BLOCK :] = 0
        totals = np.empty((len(some) + 1, len(kinds)), dtype)
        totals[0] = sofar
        for column, kind in enumerate(kinds):
            own = np.where(some == kind, took, dtype.type(0)).sum(axis=1, dtype=dtype)
            totals[1:, column] = own
        np.cumsum(totals, axis=0, dtype=dtype, out=totals)
        sofar = totals[-1].copy()
        yield totals[:-1]


def _added_up(
    lengths: Packed, state: Bytes, kinds: Bytes, dtype: np.dtype[Any]
) -> Iterator[npt.NDArray[Any]]:
    """As `_totals`, in one pass."""
    column_of = np.full(256, len(kinds), np.uint8)
    column_of[kinds] = np.arange(len(kinds))
    sofar = np.zeros(len(kinds), np.uint64)
    for begin in range(0, len(lengths.base), BLOCKS_AT_ONCE):
        end = min(begin + BLOCKS_AT_ONCE, len(lengths.base))
        totals = np.empty((end - begin, len(kinds)), dtype)
        compiled.passes.add_up(
            lengths.first[begin : end + 1], lengths.base[begin:end], lengths.rows, PER_BLOCK,
            state[begin * PER_BLOCK : end * PER_BLOCK], column_of,
            len(lengths) - begin * PER_BLOCK, sofar, totals,
        )  # fmt: skip
        yield totals
