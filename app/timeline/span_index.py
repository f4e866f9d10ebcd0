"""Spans at every zoom: which are visible, and what each pixel shows when they are too many.

Beside the spans stand running totals of the busy time of each kind of span. The totals at the two
edges of a pixel give its busy time per kind exactly, however many spans lie between, so a picture
costs a search per pixel edge and nothing per span.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes.lane import Ints, depths
from stepscope.ingest.times import FAR_NS

Bytes = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.uint32]
SPANS_PER_BIN = 16
LANES_AT_ONCE = 1024
"""Lanes over which a sum is made at once: each has numbers for every pixel."""


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

    `offsets[i]:offsets[i + 1]` are the spans of lane i, by time.
    """

    def __init__(self, spans: pl.DataFrame, num_lanes: int) -> None:
        """Take spans ordered by lane and start."""
        lane = spans["lane"].to_numpy()
        self.offsets: Ints = np.searchsorted(lane, np.arange(num_lanes + 1)).astype(np.int64)
        self.start: Ints = spans["start"].to_numpy()
        self.end: Ints = spans["end"].to_numpy()
        self.state: Bytes = spans["state"].to_numpy()
        self.table: Bytes = spans["table"].to_numpy()
        self.ref = spans["ref"].to_numpy()
        self.kinds: Bytes = np.unique(self.state)
        self._starts = StartIndex(self.start, self.offsets)
        self._totals = _running_totals(self)
        self._column = np.zeros(256, np.int64)
        self._column[self.kinds] = np.arange(len(self.kinds))

    def visible(self, lane: int, t0: int, t1: int) -> tuple[int, int]:
        """Range of the lane's spans that touch [t0, t1); instants at t0 are in it."""
        first, last = int(self.offsets[lane]), int(self.offsets[lane + 1])
        low = first + int(np.searchsorted(self.end[first:last], t0, "left"))
        high = first + int(np.searchsorted(self.start[first:last], t1, "left"))
        # A span that ends at t0 does not touch it unless it also begins there.
        if low < high and self.end[low] == t0 > self.start[low]:
            low += 1
        return low, max(low, high)

    def began_by(self, lanes: Ints, times: Ints) -> Ints:
        """Of each lane, how many spans from the section's first on had begun at its time."""
        return self._starts.num_before(lanes, times[:, None] + 1)[:, 0]

    def recoloured(self, state: Bytes) -> SpanIndex:
        """The same spans in other states."""
        other = copy(self)
        other.state, other.kinds = state, np.unique(state)
        other._totals = _running_totals(other)
        other._column = np.zeros(256, np.int64)
        other._column[other.kinds] = np.arange(len(other.kinds))
        return other

    def pixels(self, lanes: Ints, edges: Ints, hidden: Collection[int] = ()) -> Pixels:
        """Picture of some lanes over pixels [edges[i], edges[i + 1]), each at least 1 ns wide.

        Spans of a hidden state are counted, and not seen.
        """
        began = self._starts.num_before(lanes, edges)
        cut = self._cut(lanes, edges, began)
        busy, most = np.zeros((2, len(lanes), len(edges) - 1), np.int64)
        state = np.zeros(busy.shape, np.uint8)
        for kind, amount in self._amounts(began, cut):
            if kind not in hidden:
                state[amount > most] = kind
                np.maximum(most, amount, out=most)
                busy += amount
        count = np.diff(began).astype(np.uint32) + (cut[:, :-1] > 0)
        if not busy.all():
            self._show_instants(state, (busy == 0) & (count > 0), began, hidden)
        density = np.ceil(busy * (255.0 / np.diff(edges))).clip(None, 255).astype(np.uint8)
        return Pixels(state, np.maximum(density, (count > 0) & (state > 0)), count)

    def sums(self, lane: int, t0: int, t1: int) -> dict[int, Sum]:
        """What each state took of [t0, t1) in a lane, to the nanosecond."""
        window = slice(*self.visible(lane, t0, t1))
        state = self.state[window]
        took = np.minimum(self.end[window], t1) - np.maximum(self.start[window], t0)
        return {
            int(kind): Sum(int(took[state == kind].sum()), int((state == kind).sum()))
            for kind in np.unique(state)
        }

    def busy(self, lanes: Ints, edges: Ints) -> dict[int, Ints]:
        """Busy time in ns of each kind in each pixel, summed over the lanes."""
        summed: dict[int, Ints] = {}
        for first in range(0, len(lanes), LANES_AT_ONCE):
            some = lanes[first : first + LANES_AT_ONCE]
            began = self._starts.num_before(some, edges)
            cut = self._cut(some, edges, began)
            for kind, amount in self._amounts(began, cut):
                summed[kind] = summed.get(kind, np.int64(0)) + amount.sum(axis=0)
        return summed

    def _cut(self, lanes: Ints, edges: Ints, began: Ints) -> Ints:
        """Time that the last span to begin before an edge goes on after it, else 0."""
        if not len(self.end):
            return np.zeros_like(began)
        over = self.end.take(began - 1) - edges
        return np.where((began > self.offsets[lanes][:, None]) & (over > 0), over, 0)

    def _amounts(self, began: Ints, cut: Ints) -> Iterator[tuple[int, Ints]]:
        """Per kind, its busy time in each pixel."""
        if not len(self.state):
            return
        until_edge = self._totals.take(began, axis=0)
        last = self._column.take(self.state.take(began - 1)).ravel()
        each = np.arange(last.size)
        until_edge.reshape(last.size, -1)[each, last] -= cut.ravel().astype(until_edge.dtype)
        for column, kind in enumerate(self.kinds.tolist()):
            yield kind, np.diff(until_edge[..., column]).astype(np.int64)

    def _show_instants(
        self, state: Bytes, alone: npt.NDArray[np.bool_], began: Ints, hidden: Collection[int]
    ) -> None:
        """Where nothing takes time, show the last that began."""
        last = self.state[began[:, 1:][alone] - 1]
        state[alone] = np.where(np.isin(last, list(hidden)), 0, last)


@dataclass(frozen=True, slots=True)
class Section:
    """The lanes `first_lane` and on, in order, and their spans."""

    name: str
    first_lane: int
    index: SpanIndex


class StartIndex:
    """Finds how many spans of a lane began before a time.

    Bins of equal time say between which two spans to look, so that the search in each lane is a
    few steps, taken for all pixels at once.
    """

    def __init__(self, start: Ints, offsets: Ints) -> None:
        num_lanes = len(offsets) - 1
        self._start = start
        self._num_bins = len(start) // (SPANS_PER_BIN * max(num_lanes, 1)) + 1
        self._first = int(start.min(initial=FAR_NS))
        extent_ns = int(start.max(initial=-FAR_NS)) - self._first
        self._bin_ns = max(extent_ns, 0) // self._num_bins + 1
        place = np.repeat(np.arange(num_lanes) * self._num_bins, np.diff(offsets))
        place += (start - self._first) // self._bin_ns
        counts = np.bincount(place, minlength=num_lanes * self._num_bins)
        self._before = np.concatenate(([0], np.cumsum(counts)))

    def num_before(self, lanes: Ints, times: Ints) -> Ints:
        """Number of spans, from the section's first, that began before each time in each lane."""
        bins = ((times - self._first) // self._bin_ns).clip(0, self._num_bins - 1)
        place = lanes[:, None] * self._num_bins + bins
        low: Ints = self._before.take(place)
        high = self._before.take(place + 1)
        for bit in reversed(range(int((high - low).max(initial=0)).bit_length())):
            ahead = low + ((1 << bit) - 1)
            is_before = ahead < high
            is_before &= self._start.take(ahead, mode="clip") < times
            low += is_before.astype(np.int64) << bit
        return low


def _running_totals(index: SpanIndex) -> npt.NDArray[Any]:
    """[spans + 1, kinds]: busy time of each kind before each span, from the section's first.

    uint32 where no pixel can hold 2**32 ns: differences of totals that wrapped around are right.
    """
    dur = index.end - index.start
    extent_ns = int(index.end.max(initial=0)) - int(index.start.min(initial=0))
    dtype = np.uint32 if extent_ns < 2**32 else np.int64
    totals = np.zeros((len(dur) + 1, len(index.kinds)), dtype)
    for column, kind in enumerate(index.kinds):
        np.cumsum(np.where(index.state == kind, dur, 0), dtype=dtype, out=totals[1:, column])
    return totals


def in_sublanes(spans: pl.DataFrame, num_lanes: int) -> tuple[pl.DataFrame, Ints]:
    """Spread spans that overlap over sub-lanes, ordered by lane and start.

    Gives the spans with new lane numbers, and how many sub-lanes each lane has become (at least 1).
    """
    spans = spans.sort("lane", "start", "end", descending=[False, False, True], maintain_order=True)
    lane = spans["lane"].to_numpy().astype(np.int64)
    depth = depths(lane, spans["start"].to_numpy(), spans["end"].to_numpy())
    num_sublanes = np.ones(num_lanes, np.int64)
    if not depth.any():
        return spans, num_sublanes
    np.maximum.at(num_sublanes, lane, depth + 1)
    first = np.concatenate(([0], np.cumsum(num_sublanes)[:-1]))
    spans = spans.with_columns(pl.Series("lane", first[lane] + depth).cast(pl.UInt32))
    return spans.sort("lane", "start", maintain_order=True), num_sublanes


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
