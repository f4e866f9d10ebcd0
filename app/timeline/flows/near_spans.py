"""Lookups of one span after another, where the next lies near the one before.

A picture looks up many times at once, in arrays. A path is walked span by span along few lanes:
here the blocks of spans that were unpacked once are kept as lists, and a place in a lane is
looked for from the last one on.
"""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from stepscope.app.timeline.span_index import SpanIndex
from stepscope.app.timeline.spans.span_columns import PER_BLOCK

Times = tuple[list[int], list[int]]


class NearSpans:
    """The spans of one section; whoever walks makes one, and lets go of it at the end."""

    def __init__(self, index: SpanIndex) -> None:
        self._index = index
        self._offsets: list[int] = index.offsets.tolist()
        self._blocks: dict[int, Times] = {}
        self._last: dict[int, int] = {}

    def times(self, place: int) -> tuple[int, int]:
        """When a span begins and ends."""
        block, at = divmod(place, PER_BLOCK)
        starts, ends = self._blocks.get(block) or self._unpacked(block)
        return starts[at], ends[at]

    def first_of(self, lane: int) -> int:
        """The place of the first span of a lane."""
        return self._offsets[lane]

    def began_by(self, lane: int, ts_ns: int) -> int:
        """How many spans from the section's first on had begun in a lane at a time."""
        first, last = self._offsets[lane], self._offsets[lane + 1]
        at, step = self._last.get(lane, last), 1
        if at > first and self._start(at - 1) > ts_ns:
            high = at - 1
            while high - step >= first and self._start(high - step) > ts_ns:
                high, step = high - step, 2 * step
            low = max(first, high - step + 1)
        else:
            low = at
            while low + step <= last and self._start(low + step - 1) <= ts_ns:
                low, step = low + step, 2 * step
            high = min(last, low + step - 1)
        found = low + bisect_right(range(low, high), ts_ns, key=self._start)
        self._last[lane] = found
        return found

    def ended_by(self, lane: int, ts_ns: int) -> int:
        """How many spans from the section's first on had ended in a lane at a time."""
        began = self.began_by(lane, ts_ns)
        goes_on = began > self._offsets[lane] and self.times(began - 1)[1] > ts_ns
        return began - goes_on

    def _start(self, place: int) -> int:
        block, at = divmod(place, PER_BLOCK)
        return (self._blocks.get(block) or self._unpacked(block))[0][at]

    def _unpacked(self, block: int) -> Times:
        numbers = np.array([block])
        starts = self._index.starts.blocks(numbers)
        ends = starts + self._index.lengths.blocks(numbers)
        found = self._blocks[block] = starts[0].tolist(), ends[0].tolist()
        return found
