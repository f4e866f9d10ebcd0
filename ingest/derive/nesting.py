"""Which slice is around each slice, and lanes for those that overlap in part.

Slices nest when each two are disjoint or one holds the other. Where they do, the slice around one
is the latest that has begun before it and is open: the one before it in order of time, or one of
those around that. All slices look outward at once, until few are left; these, and those that
outlast what is around them, are dealt out one by one.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from stepscope.ingest.derive.axis import NONE, Axis, Ints, Tracks

Flags = npt.NDArray[np.bool_]
Lanes = npt.NDArray[np.int32]
NUM_NESTING_LANES = 16
_FEW = 64
"""So many slices are sooner dealt out one by one than all of them look further outward."""
_MOST_STEPS = 16
"""So often they all look outward, on the average; some files would need the square of it."""


def nested(
    track: Tracks, start: Ints, end: Ints, is_slice: Flags, order: Ints | None = None
) -> tuple[Ints, Lanes]:
    """Give for each row the row of the slice around it in its lane (`NONE`: none), and that lane.

    Slices, in any order, end after they start; other rows have neither slice around them nor lane
    but the first. Tracks count from 0, and so do the lanes of each. A slice gets the first lane in
    which it nests. Identical slices nest in the order of their numbers in `order`, or of the rows.
    """
    axis = Axis.of([track], (start, end))
    rows = _by_start(track, start := axis.at(track, start), is_slice, order)
    start = start[rows]
    end = axis.at(track, end)[rows]
    if not ((start[1:] > start[:-1]) | (end[1:] <= end[:-1])).all():
        falling = np.lexsort((-end, start))
        rows, end = rows[falling], end[falling]
    around, doubtful = _around(start, end)
    lane = np.zeros(len(rows), np.int32)
    _Deal(start.data, end.data, around.data, lane.data).out(doubtful)
    del start, end  # as large as what follows
    outer, lanes = np.full(len(track), NONE), np.zeros(len(track), np.int32)
    outer[rows] = np.append(rows, NONE)[around]
    dealt = np.flatnonzero(lane)
    lanes[rows[dealt]] = lane[dealt]
    return outer, lanes


def _by_start(track: Tracks, start: Ints, is_slice: Flags, order: Ints | None) -> Ints:
    """Rows of slices in order of their starts, which all tracks have on one axis."""
    rows = np.argsort(track, kind="stable") if order is None else np.lexsort((order, track))
    if not is_slice.all():
        rows = rows[is_slice[rows]]
    # By tracks, most files are stretches that are sorted already: these cost next to nothing.
    return rows[np.argsort(start[rows], kind="stable")]


def _around(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The latest slice begun before each and still open, and of which slices that is doubtful.

    These are those that outlast it, and those for which it is not found yet: it is around the one
    that is given.
    """
    num = len(start)
    around = np.arange(NONE, num - 1)
    is_alone = start[1:] >= np.maximum.accumulate(end)[:-1]
    around[1:][is_alone] = NONE
    seeking = 1 + np.flatnonzero((start[1:] >= end[:-1]) & ~is_alone)
    # Slices one after the other: all look outward from the one before the first of them.
    is_first = np.diff(seeking, prepend=NONE) > 1
    outer = np.maximum.accumulate(np.where(is_first, seeking, 0)) - 1
    around[seeking], begins = outer, start[seeking]
    num_steps = 0
    while len(seeking) > _FEW and num_steps < _MOST_STEPS * num:
        num_steps += len(seeking)
        outer = around[outer]
        around[seeking] = outer
        is_over = end[outer] <= begins
        seeking, outer, begins = seeking[is_over], outer[is_over], begins[is_over]
    is_doubtful = (around != NONE) & (end > end[around])
    is_doubtful[seeking] = True
    return around, np.flatnonzero(is_doubtful)


@dataclass(slots=True)
class _Deal:
    """Slices by start and falling end, to be dealt out to lanes; arrays of one length.

    Of each lane the latest slice is known that may still be open: what is around that is open too.
    Beyond `NUM_NESTING_LANES` lanes hold slices one after the other (`_flat`: their ends and
    lanes), so that hostile files take n log n and not n squared.
    """

    start: memoryview[int]
    end: memoryview[int]
    around: memoryview[int]
    lane: memoryview[int]
    _latest: list[int] = field(default_factory=lambda: [NONE])
    _flat: list[tuple[int, int]] = field(default_factory=list)

    def out(self, doubtful: Ints) -> None:
        """Deal out what is doubtful, and what begins while other lanes than the first are open.

        What begins within a slice of the first lane stays there too, but for what is doubtful.
        """
        doubts = iter([*doubtful.tolist(), len(self.start)])
        place = doubt = next(doubts)
        self._latest[0] = place - 1
        closed = 0
        while place < len(self.start):
            if place == doubt:
                doubt = next(doubts)
            self.lane[place] = lane = self._lane_for(place)
            closed = max(closed, self.end[place] if lane else 0)
            following = place + 1
            if lane == 0:
                following = bisect_left(self.start, self.end[place], following, doubt)
            if following < doubt and self.start[following] >= closed:
                following = doubt
            if following > place + 1:
                self._latest[0] = following - 1
            place = following

    def _lane_for(self, place: int) -> int:
        start, end = self.start[place], self.end[place]
        for lane in range(len(self._latest)):
            outer = self._open_in(lane, start)
            if outer == NONE or self.end[outer] >= end:
                self.around[place] = outer
                self._latest[lane] = place
                return lane
        self.around[place] = NONE
        if len(self._latest) < NUM_NESTING_LANES:
            self._latest.append(place)
            return len(self._latest) - 1
        is_free = self._flat and self._flat[0][0] <= start
        lane = heapq.heappop(self._flat)[1] if is_free else NUM_NESTING_LANES + len(self._flat)
        heapq.heappush(self._flat, (end, lane))
        return lane

    def _open_in(self, lane: int, start: int) -> int:
        """The innermost slice of a lane that is open then."""
        outer = self._latest[lane]
        while outer != NONE and self.end[outer] <= start:
            outer = self.around[outer]
        self._latest[lane] = outer
        return outer
