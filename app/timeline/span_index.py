"""Spans at every zoom: which are visible, and what each pixel shows when they are too many.

Spans are packed in blocks, and before each block stand the totals of the busy time of each kind of
span. The totals at the two edges of a pixel, and of what is before each edge in its block, give its
busy time per kind exactly, however many spans lie between: a picture costs a look into one block
for each pixel edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepscope.app.timeline.spans.packed import Bytes, Ints
from stepscope.app.timeline.spans.span_columns import PER_BLOCK, Columns
from stepscope.app.timeline.spans.start_index import StartIndex

Counts = npt.NDArray[np.uint32]
EDGES_AT_ONCE = 8 << 10
"""Edges of pixels that are looked up at once: each needs a block of spans."""
SPANS_AT_ONCE = 1 << 20
FEW = 1 << 31
"""Below this, two numbers of 4 bytes are added and compared in 4 bytes."""
EXACT = 1 << 48
"""Below this, so many lengths as are in a block add up exactly as floats."""


@dataclass(frozen=True, slots=True)
class Pixels:
    """What each pixel of each lane shows; three arrays [lanes, width].

    `state`: the state that fills most of the pixel, 0 where there is nothing. `density`: share of
    the pixel that is busy, 0..255, at least 1 where there is anything. `count`: spans touching it.
    """

    state: Bytes
    density: Bytes
    count: Counts


class Sum(NamedTuple):
    """How long spans were in a window, and how many of them touch it."""

    ns: int
    num_spans: int


class SpanIndex:
    """The spans of a section, lane after lane, none overlapping another of its lane.

    `offsets[i]:offsets[i + 1]` are the spans of lane i, by time; `kinds` are the states they show.
    `starts`, `lengths` and `ref` are packed and give arrays where they are asked for some of them.
    """

    def __init__(self, columns: Columns) -> None:
        """Take the columns of spans, and how much of each state there is before each block."""
        self.columns = columns
        self.offsets, self.starts, self.lengths = columns.offsets, columns.starts, columns.lengths
        self.state: Bytes = columns.state[: len(self.starts)]
        self.table, self.ref = columns.table, columns.ref
        self.kinds: Bytes = columns.kinds
        heads = -(-columns.offsets // PER_BLOCK)
        self._heads = StartIndex(self.starts.base, heads, columns.heads_before)
        self._column = np.zeros(256, np.int64)
        self._column[self.kinds] = np.arange(len(self.kinds))

    def __len__(self) -> int:
        return len(self.starts)

    def ends(self, places: slice | Ints) -> Ints:
        """When the spans at some places end."""
        ends: Ints = self.starts[places] + self.lengths[places]
        return ends

    def visible(self, lane: int, t0: int, t1: int) -> tuple[int, int]:
        """Range of the lane's spans that touch [t0, t1); instants at t0 are in it."""
        found = self._found(np.array([lane]), np.array([[t0, t1]]))
        low, high = found.began.tolist()
        return low - bool(found.cut[0]), max(low, high)

    def began_by(self, lanes: Ints, times: Ints) -> Ints:
        """Of each lane, how many spans from the section's first on had begun at its time."""
        return self._found(lanes, times[:, None] + 1).began

    def ended_by(self, lanes: Ints, ts_ns: int) -> Ints:
        """Of each lane, how many spans from the section's first on had ended at a time."""
        began = self.began_by(lanes, np.full(len(lanes), ts_ns))
        is_own = began > self.offsets.take(lanes)
        goes_on = self.ends((began - 1).clip(0)) > ts_ns if len(self) else is_own
        return began - (is_own & goes_on)

    def recoloured(self, state: Bytes) -> SpanIndex:
        """The same spans in other states."""
        return SpanIndex(self.columns.in_states(state))

    def pixels(self, lanes: Ints, edges: Ints, hidden: Collection[int] = ()) -> Pixels:
        """Picture of some lanes over pixels [edges[i], edges[i + 1]), each at least 1 ns wide.

        Spans of a hidden state are counted, and not seen.
        """
        shape = (len(lanes), len(edges) - 1)
        made = Pixels(
            np.zeros(shape, np.uint8), np.zeros(shape, np.uint8), np.zeros(shape, np.uint32)
        )
        at_once = max(1, EDGES_AT_ONCE // len(edges))
        for first in range(0, len(lanes), at_once):
            rows = slice(first, first + at_once)
            self._paint(made, rows, lanes[rows], edges, hidden)
        return made

    def _paint(
        self, made: Pixels, rows: slice, lanes: Ints, edges: Ints, hidden: Collection[int]
    ) -> None:
        found = self._found(lanes, np.broadcast_to(edges, (len(lanes), len(edges))))
        began, cut = (each.reshape(len(lanes), -1) for each in (found.began, found.cut))
        busy, most = np.zeros((2, len(lanes), len(edges) - 1), np.int64)
        state = made.state[rows]
        for kind, amount in self._amounts(found, len(lanes)):
            if kind not in hidden:
                state[amount > most] = kind
                np.maximum(most, amount, out=most)
                busy += amount
        count = np.diff(began).astype(np.uint32) + (cut[:, :-1] > 0)
        if not busy.all():
            self._show_instants(state, (busy == 0) & (count > 0), began, hidden)
        density = np.ceil(busy * (255.0 / np.diff(edges))).clip(None, 255).astype(np.uint8)
        made.density[rows] = np.maximum(density, (count > 0) & (state > 0))
        made.count[rows] = count

    def sums(self, lane: int, t0: int, t1: int) -> dict[int, Sum]:
        """What each state took of [t0, t1) in a lane, to the nanosecond."""
        summed: dict[int, list[int]] = {}
        low, high = self.visible(lane, t0, t1)
        for first in range(low, high, SPANS_AT_ONCE):
            window = slice(first, min(high, first + SPANS_AT_ONCE))
            state = self.state[window]
            took = np.minimum(self.ends(window), t1) - np.maximum(self.starts[window], t0)
            for kind in np.unique(state).tolist():
                own = summed.setdefault(kind, [0, 0])
                own[0] += int(took[state == kind].sum())
                own[1] += int((state == kind).sum())
        return {kind: Sum(*own) for kind, own in sorted(summed.items())}

    def busy(self, lanes: Ints, edges: Ints) -> dict[int, Ints]:
        """Busy time in ns of each kind in each pixel, summed over the lanes."""
        summed: dict[int, Ints] = {}
        at_once = max(1, EDGES_AT_ONCE // len(edges))
        for first in range(0, len(lanes), at_once):
            some = lanes[first : first + at_once]
            found = self._found(some, np.broadcast_to(edges, (len(some), len(edges))))
            for kind, amount in self._amounts(found, len(some)):
                summed[kind] = summed.get(kind, np.int64(0)) + amount.sum(axis=0)
        return summed

    def _found(self, lanes: Ints, times: Ints) -> _Found:
        """Look up times [lanes, any]: in which block of spans each falls, and behind which span."""
        if not len(self.starts):
            none = np.zeros(times.size, np.int64)
            nothing = np.zeros((0, PER_BLOCK), np.int64)
            return _Found(none, none, none, nothing, nothing > 0)
        lane_first, lane_last = (
            np.repeat(self.offsets.take(each), times.shape[1]) for each in (lanes, lanes + 1)
        )
        heads = self._heads.num_before(lanes, times).ravel()
        block = np.maximum(heads - 1, lane_first // PER_BLOCK)
        np.minimum(block, len(self.starts.base) - 1, out=block)
        times, place = times.reshape(-1), block * PER_BLOCK
        above, base = self.starts.above(block), self.starts.base.take(block)
        is_before = above < _within(times - base, above.dtype)[:, None]
        is_crossing = (place < lane_first) | (place + PER_BLOCK > lane_last)
        if is_crossing.any():
            own = _Own(is_crossing, place, lane_first, lane_last)
            is_before[is_crossing] = own.before(self.starts.blocks(block[is_crossing]), times)
        num = np.bitwise_count(is_before.view(np.uint64))
        began = np.maximum(place, lane_first) + num[:, 0] + num[:, 1]
        if is_crossing.any():
            # What is of lanes before, and stands in the same block, is before as well.
            is_before[is_crossing] |= own.of_others_before()
        lengths = self._lengths(block)
        last = np.arange(0, place.size * PER_BLOCK, PER_BLOCK) + (began - 1) % PER_BLOCK
        over = base + above.reshape(-1).take(last).astype(np.int64) - times
        over += lengths.reshape(-1).take(last).astype(np.int64)
        cut = np.where((began > lane_first) & (over > 0), over, 0)
        return _Found(block, began, cut, lengths, is_before)

    def _lengths(self, block: Ints) -> npt.NDArray[Any]:
        """The lengths of the spans of blocks, in few bytes where these hold them."""
        above, base = self.lengths.above(block), self.lengths.base.take(block)
        if above.dtype == np.uint32 and int(base.max(initial=0)) < FEW:
            above += base.astype(np.uint32)[:, None]
            return above
        lengths: Ints = above.astype(np.int64) + base[:, None]
        return lengths

    def _amounts(self, found: _Found, num_lanes: int) -> Iterator[tuple[int, Ints]]:
        """Per kind, its busy time in each pixel."""
        if not len(found.lengths):
            return
        took = found.lengths * found.is_before
        states = self.columns.state.reshape(-1, PER_BLOCK).take(found.block, axis=0)
        within = _by_kind(took, states, self.kinds)
        each, last = np.arange(len(states)), (found.began - 1) % PER_BLOCK
        within[each, self._column.take(states[each, last])] -= found.cut
        until_edge = self.columns.totals.take(found.block, axis=0)
        until_edge += within.astype(until_edge.dtype)
        by_lane = until_edge.reshape(num_lanes, -1, len(self.kinds))
        for column, kind in enumerate(self.kinds.tolist()):
            yield kind, np.diff(by_lane[..., column]).astype(np.int64)

    def _show_instants(
        self, state: Bytes, alone: npt.NDArray[np.bool_], began: Ints, hidden: Collection[int]
    ) -> None:
        """Where nothing takes time, show the last that began."""
        last = self.state[began[:, 1:][alone] - 1]
        state[alone] = np.where(np.isin(last, list(hidden)), 0, last)


class _Found(NamedTuple):
    """Of each time the block, how many spans had begun before it, and how long the last goes on.

    `lengths` and `is_before` [times, PER_BLOCK] are those of the spans of the block.
    """

    block: Ints
    began: Ints
    cut: Ints
    lengths: npt.NDArray[Any]
    is_before: npt.NDArray[np.bool_]


class _Own:
    """What is of their own lane in blocks that hold spans of several."""

    def __init__(self, which: npt.NDArray[np.bool_], place: Ints, first: Ints, last: Ints) -> None:
        self._which, self._first, self._last = which, first[which, None], last[which, None]
        self._places = place[which, None] + np.arange(PER_BLOCK)

    def before(self, starts: Ints, times: Ints) -> npt.NDArray[np.bool_]:
        """Which spans of the lane begin before the times."""
        own = (self._places >= self._first) & (self._places < self._last)
        found: npt.NDArray[np.bool_] = own & (starts < times[self._which, None])
        return found

    def of_others_before(self) -> npt.NDArray[np.bool_]:
        """Which are of lanes before."""
        found: npt.NDArray[np.bool_] = self._places < self._first
        return found


def _within(above: Ints, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Numbers to compare with those above a base: what is more than any of these is cut."""
    most = FEW if dtype == np.uint32 else np.iinfo(np.int64).max
    cut: npt.NDArray[Any] = above.clip(0, most).astype(dtype)
    return cut


def _by_kind(took: npt.NDArray[Any], states: Bytes, kinds: Bytes) -> Ints:
    """[rows, kinds]: the sum of the times of each kind in each row."""
    if took.dtype == np.uint32 or int(took.max(initial=0)) < EXACT:
        low, high = int(kinds[0]), int(kinds[-1]) + 1
        rows = np.arange(0, len(took) * (high - low), high - low)
        column = states + (rows - low)[:, None]
        size = len(took) * (high - low)
        # Spans behind the last one of all have no state, and take no time.
        summed = np.bincount(column.ravel().clip(0), took.ravel().astype(np.float64), size)
        return summed.astype(np.int64).reshape(len(took), -1)[:, kinds.astype(np.int64) - low]
    found = np.zeros((len(took), len(kinds)), np.int64)
    for column_, kind in enumerate(kinds):
        np.sum(np.where(states == kind, took, 0), axis=1, out=found[:, column_])
    return found


@dataclass(frozen=True, slots=True)
class Section:
    """The lanes `first_lane` and on, in order, and their spans."""

    name: str
    first_lane: int
    index: SpanIndex


def pixel_edges(t0: int, t1: int, width: int) -> Ints:
    """Times of the `width + 1` edges of the pixels of [t0, t1); no pixel is empty.

    Needs t1 - t0 >= width.
    """
    whole, part = divmod(t1 - t0, width)
    pixel = np.arange(width + 1, dtype=np.int64)
    return t0 + pixel * whole + pixel * part // width


def shown_edges(t0: int, t1: int, width: int) -> tuple[Ints, Ints]:
    """Edges of pixels, and the pixel to show for each wanted: several the same below 1 ns each."""
    assert t0 < t1
    assert width > 0
    exact = min(width, t1 - t0)
    return pixel_edges(t0, t1, exact), np.arange(width, dtype=np.int64) * exact // width
