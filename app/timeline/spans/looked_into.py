"""The blocks of spans that the edges of pixels fall into, each unpacked once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from stepscope.app.timeline.spans.packed import Bytes, Ints
from stepscope.app.timeline.spans.span_columns import PER_BLOCK, Columns

FEW = 1 << 31
"""Below this, times above a base are compared in 4 bytes."""
WORD_BITS = 64
Words = npt.NDArray[np.uint64]


class Room:
    """Arrays that are used again: to ask the system for new ones takes longer than to fill them."""

    def __init__(self) -> None:
        self._held: dict[str, Words] = {}

    def words(self, name: str, size: int) -> Words:
        """An array of any content, which is another's by this name from the next call on."""
        if name not in self._held or len(self._held[name]) < size:
            self._held[name] = np.empty(size, np.uint64)
        return self._held[name][:size]


class LookedInto:
    """Times of lanes [lanes, any], sorted in each lane, and the blocks that they fall into.

    `row` says in which of the unpacked blocks a time falls: follow-ups in the same block of a lane
    share it, so each unpacked block is of one lane. `began` counts the spans of the section that
    began before a time, `cut` how long the last of its lane goes on after it.
    """

    def __init__(
        self, columns: Columns, block: Ints, first: Ints, last: Ints, times: Ints, room: Room
    ) -> None:
        """Take the block of each time, and where the spans of each lane begin and end."""
        self._columns, self.block, self._room = columns, block, room
        self.began: Ints = np.zeros_like(block)
        self.cut: Ints = self.began
        if len(columns.starts):
            self._look(first, last, times)

    def _look(self, first: Ints, last: Ints, times: Ints) -> None:
        columns, block = self._columns, self.block
        is_new = np.ones(block.shape, np.bool_)
        np.not_equal(block[:, 1:], block[:, :-1], out=is_new[:, 1:])
        self._row: Ints = (np.cumsum(is_new.ravel()) - 1).reshape(block.shape)
        own = block[is_new]
        per_lane = np.count_nonzero(is_new, axis=1)
        above, base = _starts(columns, own, per_lane, first, last)
        self._states: Bytes = columns.state.reshape(-1, PER_BLOCK).take(own, axis=0).ravel()
        self._lengths = _lengths(columns, own)
        row_first = self._row * PER_BLOCK
        since = times - base.take(self._row)
        num = _num_before(above, row_first, since)
        self.began = np.maximum(block * PER_BLOCK + num, first[:, None])
        self._at: Ints = self.began - block * PER_BLOCK + row_first
        self._last = (self._at - 1).clip(0)
        over = above.take(self._last).astype(np.int64)
        over += self._lengths.take(self._last).astype(np.int64)
        over -= since
        over *= self.began > first[:, None]
        self.cut = np.maximum(over, 0, out=over)

    def until(self, kinds: Bytes) -> Iterator[npt.NDArray[Any]]:
        """Of each kind, its busy time from the section's first to each time, [lanes, any].

        The lengths of some kinds lie side by side in a word, so that they are added up at once:
        each has the bits that the spans of a block together need, and none carries into another.
        """
        if not len(kinds):
            return
        totals = self._columns.totals.take(self.block, axis=0)
        bits = (PER_BLOCK * int(self._lengths.max(initial=0))).bit_length() or 1
        at_once = max(1, WORD_BITS // bits)
        mask = np.uint64((1 << min(bits, WORD_BITS)) - 1)
        for begin in range(0, len(kinds), at_once):
            some = kinds[begin : begin + at_once]
            summed = self._summed(some, bits)
            for column in range(len(some)):
                own = (summed >> np.uint64(bits * column)) & mask
                own = own.astype(totals.dtype)
                own += totals[..., begin + column]
                yield own

    def _summed(self, kinds: Bytes, bits: int) -> Words:
        """What is before each time in its block of some kinds, side by side."""
        weight = np.zeros(256, np.uint64)
        weight[kinds] = np.uint64(1) << np.arange(0, len(kinds) * bits, bits, dtype=np.uint64)
        size = len(self._lengths)
        took, before = self._room.words("took", size), self._room.words("before", size // 2 + 1)
        weight.take(self._states, out=took, mode="clip")
        np.multiply(took, self._lengths, out=took)
        # Two and two are added first, all at once: one after the other is slow.
        before[0] = 0
        np.add(took[::2], took[1::2], out=before[1:])
        np.cumsum(before, out=before)
        summed: Words = before.take(self._at >> 1)
        summed += took.take(self._last) * (self._at & 1).view(np.uint64)
        summed -= before[: -1 : PER_BLOCK // 2].take(self._row)
        summed -= self.cut.view(np.uint64) * weight.take(self._states.take(self._last))
        return summed


def _num_before(above: npt.NDArray[Any], first: Ints, since: Ints) -> Ints:
    """How many of the spans of a block, from `first` on, began before each time since its base."""
    most = FEW if above.dtype == np.uint32 else np.iinfo(np.int64).max
    within = since.clip(0, most).astype(above.dtype)
    at = first.copy()
    step = PER_BLOCK // 2
    while step:
        at += step * (above.take(at + (step - 1)) < within)
        step //= 2
    at += above.take(at) < within
    at -= first
    return at


def _starts(
    columns: Columns, block: Ints, per_lane: Ints, first: Ints, last: Ints
) -> tuple[npt.NDArray[Any], Ints]:
    """When the spans of blocks begin above a base, one after the other; and the base of each block.

    What is of a lane before is at the base, what is of one behind is never before anything.
    """
    starts = columns.starts
    base: Ints = starts.base.take(block)
    # Only the first and the last block of a lane may hold spans of others.
    behind = np.cumsum(per_lane)
    which = np.concatenate((behind - per_lane, behind - 1))
    first, last, place = np.tile(first, 2), np.tile(last, 2), block[which] * PER_BLOCK
    is_shared = (place < first) | (place + PER_BLOCK > last)
    if not is_shared.any():
        return starts.above(block).ravel(), base
    which, first, last = which[is_shared], first[is_shared], last[is_shared]
    places = place[is_shared, None] + np.arange(PER_BLOCK)
    is_before, is_behind = places < first[:, None], places >= last[:, None]
    is_own = ~(is_before | is_behind)
    told = starts.blocks(block[which])
    base[which] = np.where(is_own, told, told.max(axis=1, keepdims=True)).min(axis=1) - 1
    told -= base[which, None]
    most = int(told[is_own].max(initial=0))
    # Another stands in for what is shared: its starts of several lanes take the most bytes.
    stand_in = np.ones(len(block), np.bool_)
    stand_in[which] = False
    alone = block.copy()
    alone[which] = block[np.argmax(stand_in)]
    found = starts.above(alone)
    if most >= FEW:
        found = found.astype(np.uint64)
    told[is_before] = 0
    unsigned = told.astype(found.dtype)
    unsigned[is_behind] = np.iinfo(found.dtype).max
    found[which] = unsigned
    return found.ravel(), base


def _lengths(columns: Columns, block: Ints) -> npt.NDArray[Any]:
    """How long the spans of blocks are, one after the other; of 4 or 8 bytes."""
    above, base = columns.lengths.above(block), columns.lengths.base.take(block)
    if base.any():
        return (above + base.astype(np.uint64)[:, None]).ravel()
    return above.ravel()
