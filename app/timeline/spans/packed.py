"""Numbers in as few bytes as the numbers around them need.

A block of numbers is kept as one of them and what the others are above it, byte by byte: the lowest
bytes of all, then the next, as many as the largest needs. Any number is there again, exactly.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from stepscope.app.timeline.spans import compiled

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Unsigned = npt.NDArray[np.unsignedinteger[Any]]
FEW_BYTES = 3
AT_ONCE = 1 << 16
"""Blocks that are packed at a time, so that what is in between is small."""


@dataclass(frozen=True, slots=True)
class Packed:
    """So many numbers, `per_block` to a block.

    `base` [blocks]: what is added to each number of a block. `first` [blocks + 1]: where in `rows`
    the bytes of each block begin. `rows` [bytes, per_block]: of a block the lowest bytes first.
    """

    length: int
    base: npt.NDArray[Any]
    first: npt.NDArray[Any]
    rows: Bytes

    @property
    def per_block(self) -> int:
        """How many numbers a block has."""
        return int(self.rows.shape[1])

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, places: int) -> int: ...
    @overload
    def __getitem__(self, places: slice | npt.NDArray[Any]) -> Ints: ...
    def __getitem__(self, places: int | slice | npt.NDArray[Any]) -> int | Ints:
        """Numbers at places, as of an array."""
        if isinstance(places, slice):
            return self._range(range(*places.indices(self.length)))
        if isinstance(places, np.ndarray):
            return self.take(places)
        at = range(self.length)[places]
        return int(self._range(range(at, at + 1))[0])

    def take(self, places: npt.NDArray[Any]) -> Ints:
        """Numbers at places from the first on."""
        block, within = np.divmod(places, self.per_block)
        first = self.first.take(block).astype(np.int64)
        width = self.first.take(block + 1) - first
        found = np.zeros(places.shape, np.uint64)
        at = first * self.per_block + within
        bytes_ = self.rows.reshape(-1)
        for byte in range(int(width.max(initial=0))):
            has = width > byte
            if has.all():
                found |= bytes_.take(at).astype(np.uint64) << np.uint64(8 * byte)
            else:
                found[has] |= bytes_.take(at[has]).astype(np.uint64) << np.uint64(8 * byte)
            at += self.per_block
        return found.view(np.int64) + self.base.take(block).astype(np.int64)

    def stretches(self, low: Ints, high: Ints) -> Ints:
        """The numbers of each range [low, high), one range behind the other.

        They are unpacked by blocks: a long range costs half of what its places one by one do.
        """
        counts = high - low
        low, high = low[counts > 0], high[counts > 0]
        first, last = low // self.per_block, (high - 1) // self.per_block
        unpacked = self.blocks(concatenated(first, last + 1)).reshape(-1)
        begins = np.cumsum(last + 1 - first) - (last + 1 - first)
        at = begins * self.per_block + low % self.per_block
        return unpacked.take(concatenated(at, at + high - low))

    def blocks(self, block: Ints) -> Ints:
        """All numbers of some blocks, [blocks, per_block]; behind the last stands anything."""
        found = self.above(block).astype(np.int64)
        found += self.base.take(block).astype(np.int64)[:, None]
        return found

    def above(self, block: Ints) -> Unsigned:
        """What the numbers of some blocks are above their base: 4 bytes each where 3 hold them."""
        first = self.first.take(block).astype(np.int64)
        width = self.first.take(block + 1) - first
        most = int(width.max(initial=0))
        dtype: Any = np.uint32 if most <= FEW_BYTES else np.uint64
        found: npt.NDArray[Any] | None = None
        for byte in range(most):
            has = width > byte
            which = slice(None) if has.all() else has
            row = self.rows.take(first[which] + byte, axis=0).astype(dtype)
            row <<= dtype(8 * byte)
            if found is None and len(row) == len(block):
                found = row
                continue
            if found is None:
                found = np.zeros((len(block), self.per_block), dtype)
            found[which] |= row
        return np.zeros((len(block), self.per_block), dtype) if found is None else found

    def _range(self, places: range) -> Ints:
        if not places:
            return np.zeros(0, np.int64)
        low, high = min(places[0], places[-1]), max(places[0], places[-1])
        block = np.arange(low // self.per_block, high // self.per_block + 1)
        found = self.blocks(block).ravel()[low % self.per_block :][: high - low + 1]
        return found[:: places.step]


def concatenated(low: Ints, high: Ints) -> Ints:
    """All numbers of each range [low, high), one range behind the other."""
    counts = high - low
    shift = low - (np.cumsum(counts) - counts)
    found: Ints = np.arange(int(counts.sum())) + np.repeat(shift, counts)
    return found


def packed_parts(
    numbers: Ints, per_block: int, *, from_least: bool
) -> Iterator[tuple[Ints, Bytes, Bytes]]:
    """Pack numbers, some blocks at a time: their base, how many bytes wide each is, their rows.

    The base is the first number of a block, or its least, or 0 where that takes as few bytes. The
    last block is filled with its last.
    """
    for begin in range(0, len(numbers), per_block * AT_ONCE):
        some = numbers[begin : begin + per_block * AT_ONCE]
        if short := -len(some) % per_block:
            some = np.concatenate((some, np.repeat(some[-1:], short)))
        by_block = np.ascontiguousarray(some, np.int64).reshape(-1, per_block)
        if compiled.IS_COMPILED:
            yield _packed_at_once(by_block, from_least)
            continue
        base = by_block.min(axis=1) if from_least else by_block[:, 0].copy()
        if from_least:
            base[_is_as_wide_above_zero(base, by_block.max(axis=1))] = 0
        above = (by_block - base[:, None]).view(np.uint64)
        width = _width(above.max(axis=1))
        yield base, width, _rows(above, width)


def _packed_at_once(by_block: Ints, from_least: bool) -> tuple[Ints, Bytes, Bytes]:
    num_blocks, per_block = by_block.shape
    base, width = np.empty(num_blocks, np.int64), np.empty(num_blocks, np.uint8)
    room = np.empty(by_block.nbytes, np.uint8)
    num_rows = compiled.passes.pack(by_block, per_block, from_least, base, width, room)
    return base, width, room[: num_rows * per_block].reshape(-1, per_block).copy()


def _is_as_wide_above_zero(least: Ints, most: Ints) -> npt.NDArray[np.bool_]:
    """Which blocks need no base: nothing is to be added then when they are unpacked."""
    spread = (most - least).view(np.uint64)
    is_as_wide: npt.NDArray[np.bool_] = _width(most.view(np.uint64)) == _width(spread)
    return (least >= 0) & is_as_wide


def _width(most: npt.NDArray[np.uint64]) -> Bytes:
    """How many bytes numbers need."""
    width = np.zeros(len(most), np.uint8)
    for byte in range(8):
        width += most >= np.uint64(1 << (8 * byte))
    return width


def _rows(above: npt.NDArray[np.uint64], width: Bytes) -> Bytes:
    last = np.cumsum(width, dtype=np.int64)
    first = last - width
    rows = np.empty((int(last[-1]), above.shape[1]), np.uint8)
    told = above.view(np.uint8).reshape(*above.shape, 8)
    for byte in range(int(width.max(initial=0))):
        place = byte if sys.byteorder == "little" else 7 - byte
        has = width > byte
        if has.all():
            rows[first + byte] = told[:, :, place]
        else:
            rows[first[has] + byte] = told[has, :, place]
    return rows
