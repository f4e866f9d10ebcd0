"""Spans at every zoom: which are visible, and what each pixel shows when they are too many.

Beside the spans stand running totals of the busy time of each kind of span. The totals at the two
edges of a pixel give its busy time per kind exactly, however many spans lie between, so a picture
costs a search per pixel edge and nothing per span.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes import Ints, depths

Bytes = npt.NDArray[np.uint8]
Counts = npt.NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Pixels:
    """What each pixel of each lane shows; three arrays [lanes, width].

    `state`: the state that fills most of the pixel, 0 where there is nothing. `density`: share of
    the pixel that is busy, 0..255, at least 1 where there is anything. `count`: spans touching it.
    """

    state: Bytes
    density: Bytes
    count: Counts


class Levels:
    """The spans of a section, lane after lane, none overlapping another of its lane.

    `offsets[i]:offsets[i + 1]` are the spans of lane i, by time; `base` is the first lane's id.
    """

    def __init__(self, spans: pl.DataFrame, num_lanes: int) -> None:
        """Take spans ordered by lane and start."""
        lane = spans["lane"].to_numpy()
        self.offsets: Ints = np.searchsorted(lane, np.arange(num_lanes + 1)).astype(np.int64)
        self.start: Ints = spans["start"].to_numpy()
        self.end: Ints = spans["end"].to_numpy()
        self.state: Bytes = spans["state"].to_numpy()
        self.table: Bytes = spans["table"].to_numpy()
        self.row = spans["ref"].to_numpy()
        self.kinds: Bytes = np.unique(self.state)
        self.totals = _running_totals(self)

    def visible(self, lane: int, t0: int, t1: int) -> tuple[int, int]:
        """Range of the lane's spans that touch [t0, t1); instants at t0 are in it."""
        first, last = int(self.offsets[lane]), int(self.offsets[lane + 1])
        low = first + int(np.searchsorted(self.end[first:last], t0, "left"))
        high = first + int(np.searchsorted(self.start[first:last], t1, "left"))
        # A span that ends at t0 does not touch it unless it also begins there.
        if low < high and self.end[low] == t0 > self.start[low]:
            low += 1
        return low, max(low, high)

    def pixels(self, lanes: Ints, edges: Ints, hidden: Container[int] = ()) -> Pixels:
        """Picture of some lanes over pixels [edges[i], edges[i + 1]), each at least 1 ns wide.

        Spans of a hidden state are counted, and not seen.
        """
        shape = (len(lanes), len(edges) - 1)
        began = self._began(lanes, edges)
        cut = self._cut(lanes, edges, began)
        busy = np.zeros(shape, np.int64)
        most = np.zeros(shape, np.int64)
        state = np.zeros(shape, np.uint8)
        for kind, totals in zip(self.kinds, self.totals, strict=True):
            if kind in hidden:
                continue
            amount = self._amount(kind, totals, began, cut)
            state[amount > most] = kind
            np.maximum(most, amount, out=most)
            busy += amount
        count = np.diff(began).astype(np.uint32) + (cut[:, :-1] > 0)
        if not hidden and not busy.all():
            self._show_instants(state, busy, count, began)
        density = np.ceil(busy * (255.0 / np.diff(edges))).clip(None, 255).astype(np.uint8)
        return Pixels(state, np.maximum(density, count > 0), count)

    def busy(self, lanes: Ints, edges: Ints) -> dict[int, Ints]:
        """Busy time in ns of each kind in each pixel, summed over the lanes."""
        began = self._began(lanes, edges)
        cut = self._cut(lanes, edges, began)
        return {
            int(kind): self._amount(kind, totals, began, cut).sum(axis=0)
            for kind, totals in zip(self.kinds, self.totals, strict=True)
        }

    def _began(self, lanes: Ints, edges: Ints) -> Ints:
        """Number of spans, from the section's first, that began before each edge in each lane."""
        began = np.empty((len(lanes), len(edges)), np.int64)
        for row, lane in enumerate(lanes):
            first, last = self.offsets[lane], self.offsets[lane + 1]
            began[row] = np.searchsorted(self.start[first:last], edges)
            began[row] += first
        return began

    def _cut(self, lanes: Ints, edges: Ints, began: Ints) -> Ints:
        """Time that the last span to begin before an edge goes on after it, else 0."""
        if not len(self.end):
            return np.zeros_like(began)
        over = self.end[began - 1] - edges
        return np.where((began > self.offsets[lanes][:, None]) & (over > 0), over, 0)

    def _amount(self, kind: int, totals: npt.NDArray[np.generic], began: Ints, cut: Ints) -> Ints:
        last_is_kind = self.state[began - 1] == kind if len(self.state) else False
        until_edge = totals[began] - np.where(last_is_kind, cut, 0).astype(totals.dtype)
        return np.diff(until_edge).astype(np.int64)

    def _show_instants(self, state: Bytes, busy: Ints, count: Counts, began: Ints) -> None:
        alone = (busy == 0) & (count > 0)
        state[alone] = self.state[began[:, 1:][alone] - 1]


def _running_totals(levels: Levels) -> list[npt.NDArray[np.generic]]:
    """Per kind, busy time of all spans before each; uint32 where no pixel can hold 2**32 ns.

    Differences of totals that wrapped around are still right, as long as they fit.
    """
    dur = levels.end - levels.start
    short = not len(dur) or int(levels.end.max()) - int(levels.start.min()) < 2**32
    dtype = np.uint32 if short else np.int64
    totals = []
    for kind in levels.kinds:
        total = np.zeros(len(dur) + 1, dtype)
        np.cumsum(np.where(levels.state == kind, dur, 0), dtype=dtype, out=total[1:])
        totals.append(total)
    return totals


def in_sublanes(spans: pl.DataFrame, num_lanes: int) -> tuple[pl.DataFrame, Ints]:
    """Spread spans that overlap over sub-lanes, ordered by lane and start.

    Gives the spans with new lane numbers, and how many sub-lanes each lane has become (at least 1).
    """
    spans = spans.sort("lane", "start", "end", descending=[False, False, True], maintain_order=True)
    lane = spans["lane"].to_numpy().astype(np.int64)
    depth = depths(lane, spans["start"].to_numpy(), spans["end"].to_numpy())
    num_sublanes = np.ones(num_lanes, np.int64)
    np.maximum.at(num_sublanes, lane, depth + 1)
    if not depth.any():
        return spans, num_sublanes
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
