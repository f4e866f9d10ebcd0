"""Spans at every zoom: which are visible, and what each pixel shows when they are too many.

Spans are packed in blocks, and before each block stand the totals of the busy time of each kind of
span. The totals at the two edges of a pixel, and of what is before each edge in its block, give its
busy time per kind exactly, however many spans lie between: a picture costs the unpacking of each
block that an edge falls into, once, and a few steps within it for each edge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stepscope.app.palette import SEEN_FIRST
from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.looked_into import LookedInto, Room
from stepscope.app.timeline.spans.packed import Bytes, Ints
from stepscope.app.timeline.spans.span_columns import PER_BLOCK, Columns
from stepscope.app.timeline.spans.start_index import StartIndex

Counts = npt.NDArray[np.uint32]
EDGES_AT_ONCE, BLOCKS_AT_ONCE = 32 << 10, 8 << 10
"""Edges of pixels that are looked up at once, and blocks of spans unpacked for them: what a
processor has at hand holds them.
"""
SPANS_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Pixels:
    """What each pixel of each lane shows; three arrays [lanes, width].

    `state`: the state that fills most of the pixel, 0 where there is nothing; one of `SEEN_FIRST`
    where there is any of it. `density`: share of
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
        self._lanes_with: dict[tuple[int, ...], npt.NDArray[np.bool_]] = {}
        self._heads = StartIndex(self.starts.base, heads, columns.heads_before)

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def has_moments(self) -> bool:
        """Whether any span takes no time."""
        parts = range(0, len(self), SPANS_AT_ONCE)
        return any((self.lengths[at : at + SPANS_AT_ONCE] == 0).any() for at in parts)

    def lanes_with(self, kinds: tuple[int, ...]) -> npt.NDArray[np.bool_]:
        """Whether each lane has a span of any of some states."""
        if kinds not in self._lanes_with:
            found = np.zeros(len(self.offsets) - 1, np.bool_)
            if np.isin(self.kinds, kinds).any():
                for at in range(0, len(self), SPANS_AT_ONCE):
                    places = np.flatnonzero(np.isin(self.state[at : at + SPANS_AT_ONCE], kinds))
                    found[np.searchsorted(self.offsets, places + at, "right") - 1] = True
            self._lanes_with[kinds] = found
        return self._lanes_with[kinds]

    def ends(self, places: slice | Ints) -> Ints:
        """When the spans at some places end."""
        ends: Ints = self.starts[places] + self.lengths[places]
        return ends

    def visible(self, lane: int, t0: int, t1: int) -> tuple[int, int]:
        """Range of the lane's spans that touch [t0, t1); instants at t0 are in it."""
        first, last = self.visible_in(np.array([lane]), t0, t1)[0].tolist()
        return first, last

    def visible_in(self, lanes: Ints, t0: int, t1: int) -> Ints:
        """That range of each of some lanes, [lanes, 2]."""
        found = self._found(lanes, np.array([[t0, t1]]))
        low, high = found.began[:, 0] - (found.cut[:, 0] > 0), found.began[:, 1]
        return np.stack((low, np.maximum(low, high)), axis=1)

    def began_by(self, lanes: Ints, times: Ints) -> Ints:
        """Of each lane, how many spans from the section's first on had begun at its time."""
        return self._found(lanes, times[:, None] + 1).began[:, 0]

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
        made = self._painted(lanes, edges, hidden)
        for kind in SEEN_FIRST:
            if kind in self.kinds and kind not in hidden:
                alone = self._painted(lanes, edges, {*self.kinds.tolist()} - {kind})
                np.copyto(made.state, kind, where=alone.state == kind)
        return made

    def _painted(self, lanes: Ints, edges: Ints, hidden: Collection[int]) -> Pixels:
        """The same, in which each pixel shows what it shows most."""
        shape = (len(lanes), len(edges) - 1)
        made = Pixels(
            np.zeros(shape, np.uint8), np.zeros(shape, np.uint8), np.zeros(shape, np.uint32)
        )
        if compiled.IS_COMPILED:
            self._paint_at_once(made, lanes, edges, hidden)
            return made
        room = Room()
        for rows in self._parts(lanes, edges):
            found = self._found(lanes[rows], edges[None], room)
            self._paint(made, rows, found, edges, hidden)
        return made

    def marks(
        self, lanes: Ints, edges: Ints, kinds: tuple[int, ...], hidden: Collection[int] = ()
    ) -> Bytes:
        """Which of some states each pixel of some lanes has most of, [lanes, width]; 0 for none.

        Lanes without a span of these states cost nothing.
        """
        found = np.zeros((len(lanes), len(edges) - 1), np.uint8)
        rows = np.flatnonzero(self.lanes_with(kinds)[lanes])
        if len(rows):
            others = ({*self.kinds.tolist()} - {*kinds}) | {*hidden}
            found[rows] = self.pixels(lanes[rows], edges, others).state
        return found

    def _paint_at_once(
        self, made: Pixels, lanes: Ints, edges: Ints, hidden: Collection[int]
    ) -> None:
        """As `_paint` does all parts, in one pass."""
        columns, is_hidden = self.columns, np.zeros(256, np.uint8)
        is_hidden[list(hidden)] = 1
        starts, lengths = columns.starts, columns.lengths
        compiled.pictures.paint(
            starts.first, starts.base, starts.rows, lengths.first, lengths.base, lengths.rows,
            columns.state, columns.kinds, columns.totals, columns.offsets,
            np.ascontiguousarray(lanes, np.int64), np.ascontiguousarray(edges, np.int64), is_hidden,
            made.state, made.density, made.count, len(self), PER_BLOCK,
        )  # fmt: skip

    def _paint(
        self, made: Pixels, rows: slice, found: LookedInto, edges: Ints, hidden: Collection[int]
    ) -> None:
        began, cut, state = found.began, found.cut, made.state[rows]
        # What a pixel is busy is less than its extent, which `totals` hold.
        dtype = self.columns.totals.dtype
        busy, most = np.zeros((2, *state.shape), dtype)
        for kind, amount in self._amounts(found):
            if kind not in hidden:
                np.copyto(state, kind, where=amount > most)
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
        room = Room()
        for rows in self._parts(lanes, edges):
            for kind, amount in self._amounts(self._found(lanes[rows], edges[None], room)):
                summed[kind] = summed.get(kind, np.int64(0)) + amount.sum(axis=0, dtype=np.int64)
        return summed

    def _parts(self, lanes: Ints, edges: Ints) -> Iterator[slice]:
        """Lanes to look up at once: as many as need few edges, and few blocks of spans."""
        ends = self._heads.num_before(lanes, edges[None, [0, -1]])
        num_blocks = np.minimum(np.diff(ends) + 1, len(edges)).sum()
        by_blocks = BLOCKS_AT_ONCE * len(lanes) // max(1, int(num_blocks))
        at_once = max(1, min(EDGES_AT_ONCE // len(edges), by_blocks))
        for first in range(0, len(lanes), at_once):
            yield slice(first, first + at_once)

    def _found(self, lanes: Ints, times: Ints, room: Room | None = None) -> LookedInto:
        """Look up times [lanes, any]: in which block of spans each falls, and behind which span."""
        first, last = self.offsets.take(lanes), self.offsets.take(lanes + 1)
        block = self._heads.num_before(lanes, times)
        block -= 1
        np.maximum(block, first[:, None] // PER_BLOCK, out=block)
        np.minimum(block, len(self.starts.base) - 1, out=block)
        return LookedInto(self.columns, block, first, last, times, room or Room())

    def _amounts(self, found: LookedInto) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Per kind, its busy time in each pixel, of the type of `totals`."""
        for kind, until_edge in zip(self.kinds.tolist(), found.until(self.kinds), strict=True):
            yield kind, np.diff(until_edge)

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
