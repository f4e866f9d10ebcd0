"""Sub-lanes for slices that overlap in part, and the slice that encloses each slice.

Slices of a track nest when each pair is disjoint or one holds the other; a timeline can stack
those. Files hold others too. They are dealt out to sub-lanes, in each of which slices nest.
Identical slices nest in the order given; a slice without duration takes one nanosecond.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
NUM_NESTING_LANES = 16
MOST_BITS = 62
"""Bits of a number that is to hold the lane and the time of a slice."""


@dataclass(frozen=True, slots=True)
class _Slices:
    """Slices sorted by lane, start and falling end; arrays of one length."""

    lane: Ints
    start: Ints
    end: Ints

    def stretches(self) -> list[slice]:
        """Where each lane begins and ends."""
        borders = np.flatnonzero(np.diff(self.lane)) + 1
        starts = [0, *borders.tolist()]
        ends = [*borders.tolist(), len(self.lane)]
        return [slice(a, b) for a, b in zip(starts, ends, strict=True) if a < b]


def with_lanes(spans: pl.DataFrame) -> pl.DataFrame:
    """Give spans sub-lanes (`#2`, ...), ids and parents; their order stays as it is.

    Takes a spans frame with at least track (text or an Enum), ts_ns, dur_ns and form; gives all its
    columns with `track` suffixed where needed, `span` (the number of the row) and `parent`.
    Instants have neither lane of their own nor parent; a slice without an end outlasts all that
    have one.
    """
    names = _names(spans["track"])
    track = spans["track"].cast(pl.Enum(names)).to_physical().cast(pl.Int64).to_numpy()
    start, end = spans["ts_ns"].to_numpy(), _ends(spans)
    among = np.flatnonzero((spans["form"] != "instant").to_numpy())
    rows = _order(track, start, end, among)
    slices = _Slices(track[rows], start[rows], end[rows])
    parents, crossing = _parents(slices)
    if crossing.any():
        names, lane = _lanes(slices, crossing, names)
        track = track.copy()
        track[rows] = lane
        track, names = _by_name(track, names)
        rows = _order(track, start, end, among)
        parents, _ = _parents(_Slices(track[rows], start[rows], end[rows]))
    lanes = pl.Series("track", names, pl.Enum(names)).gather(track)
    return spans.with_columns(
        lanes if isinstance(spans.schema["track"], pl.Enum) else lanes.cast(pl.String),
        pl.int_range(pl.len(), dtype=pl.Int64).alias("span"),
        _enclosing(rows, parents, len(spans)).alias("parent"),
    )


def _names(tracks: pl.Series) -> list[str]:
    known = tracks.dtype.categories if isinstance(tracks.dtype, pl.Enum) else tracks.unique()
    return known.sort().to_list()


def _by_name(track: Ints, names: list[str]) -> tuple[Ints, list[str]]:
    """The tracks numbered in the order of their names."""
    order = sorted(range(len(names)), key=names.__getitem__)
    return np.argsort(np.array(order))[track], [names[number] for number in order]


def _ends(spans: pl.DataFrame) -> Ints:
    ends = pl.col("ts_ns") + pl.col("dur_ns").clip(lower_bound=1)
    horizon = pl.max_horizontal(ends.max(), pl.col("ts_ns").max()) + 1
    return spans.select(ends.fill_null(horizon)).to_series().to_numpy()


def _enclosing(rows: Ints, parents: Ints, num: int) -> pl.Series:
    """The span id of each span's parent; `parents` are places in `rows`."""
    enclosed = parents >= 0
    found = pl.repeat(None, num, dtype=pl.Int64, eager=True)
    return found.scatter(rows[enclosed], pl.Series(rows[parents[enclosed]]))


def _order(lane: Ints, start: Ints, end: Ints, among: Ints) -> Ints:
    """Rows sorted by lane, start and falling end; what is equal stays as it is `among` them."""
    if not among.size:
        return among
    first = start.min()
    size = _num_bits(start.max() - first)
    if _num_bits(lane.max()) + size > MOST_BITS:
        return among[np.lexsort((-end[among], start[among], lane[among]))]
    key = (lane << size | (start - first))[among]
    order = np.argsort(key, kind="stable")
    key, rows = key[order], among[order]
    del order
    begins_with_next = np.append(key[1:] == key[:-1], False)
    tied = np.flatnonzero(begins_with_next | np.roll(begins_with_next, 1))
    if tied.size:
        rows[tied] = rows[tied][_by_end(key[tied], end[rows[tied]])]
    return rows


def _by_end(key: Ints, end: Ints) -> Ints:
    """What sorts by falling end among those with equal keys, which are sorted already."""
    group = np.cumsum(np.diff(key, prepend=key[0]) != 0)
    sooner = end.max() - end
    size = _num_bits(sooner.max())
    if _num_bits(group[-1]) + size > MOST_BITS:
        return np.lexsort((-end, key))
    return np.argsort(group << size | sooner, kind="stable")


def _num_bits(number: np.int64) -> int:
    return int(number).bit_length()


def _lanes(slices: _Slices, crossing: Flags, tracks: list[str]) -> tuple[list[str], Ints]:
    """Names of all tracks and lanes, and for each slice which of them is its own."""
    names = list(tracks)
    lane = slices.lane.copy()
    taken = set(tracks)
    crossed = [stretch for stretch in slices.stretches() if crossing[stretch].any()]
    for stretch in sorted(crossed, key=lambda stretch: tracks[slices.lane[stretch.start]]):
        track = int(slices.lane[stretch.start])
        dealt = _crossed(slices.start[stretch], slices.end[stretch], crossing[stretch])
        numbers = [track]
        for number in range(1, int(dealt.max()) + 1):
            numbers.append(len(names))
            names.append(_free_name(tracks[track], number + 1, taken))
        lane[stretch] = np.array(numbers)[dealt]
    return names, lane


def _crossed(start: Ints, end: Ints, crossing: Flags) -> Ints:
    """The lanes of a track's slices, dealt out wherever some that touch each other cross."""
    begins_alone = np.append(True, start[1:] >= np.maximum.accumulate(end)[:-1])
    lanes = np.zeros(len(start), np.int64)
    borders = np.append(np.flatnonzero(begins_alone), len(start))
    groups = np.flatnonzero(np.add.reduceat(crossing, borders[:-1], dtype=np.int64))
    for first, last in zip(borders[groups].tolist(), borders[groups + 1].tolist(), strict=True):
        lanes[first:last] = _dealt(start[first:last], end[first:last])
    return lanes


def _free_name(track: str, number: int, taken: set[str]) -> str:
    name = f"{track} #{number}"
    while name in taken:
        number += 1
        name = f"{track} #{number}"
    taken.add(name)
    return name


def _parents(slices: _Slices) -> tuple[Ints, Flags]:
    """The innermost slice open where each begins (-1: none), and which ones outlast theirs.

    A lane nests if and only if none outlasts its parent. Depth is the number of slices that
    have begun and not ended; the parent is the latest slice one level up.
    """
    num = len(slices.lane)
    depth = np.empty(num, np.int64)
    for stretch in slices.stretches():
        ends = np.sort(slices.end[stretch])
        ended = np.searchsorted(ends, slices.start[stretch], side="right")
        depth[stretch] = np.arange(len(ends)) - ended
    by_depth = np.argsort(_narrowed(depth), kind="stable")
    level = depth[by_depth] * num + by_depth
    above = np.searchsorted(level, level - num) - 1
    parents = np.empty(num, np.int64)
    parents[by_depth] = np.where(depth[by_depth] > 0, by_depth[np.maximum(above, 0)], -1)
    outlasts = (parents >= 0) & (slices.end > slices.end[parents])
    return parents, outlasts


def _narrowed(numbers: Ints) -> Ints | npt.NDArray[np.uint16]:
    """The same in 16 bits if they fit: these are sorted in linear time."""
    return numbers.astype(np.uint16) if numbers.max(initial=0) < 1 << 16 else numbers


def _dealt(start: Ints, end: Ints) -> list[int]:
    """A lane for each slice of a track whose slices cross: the first in which it nests.

    Beyond `NUM_NESTING_LANES` lanes hold slices one after the other, so that hostile files take
    n log n and not n squared.
    """
    first: list[int] = []
    open_ends = [first]
    flat: list[tuple[int, int]] = []
    lanes = []
    for begins, ends in zip(start.tolist(), end.tolist(), strict=True):
        while first and first[-1] <= begins:
            first.pop()
        if not first or first[-1] >= ends:  # as most do
            first.append(ends)
            lanes.append(0)
            continue
        lane = next((n for n, opened in enumerate(open_ends) if _nests(opened, begins, ends)), None)
        if lane is None and len(open_ends) < NUM_NESTING_LANES:
            lane = len(open_ends)
            open_ends.append([ends])
        if lane is None:
            free = flat and flat[0][0] <= begins
            lane = heapq.heappop(flat)[1] if free else NUM_NESTING_LANES + len(flat)
            heapq.heappush(flat, (ends, lane))
        lanes.append(lane)
    return lanes


def _nests(opened: list[int], begins: int, ends: int) -> bool:
    """Whether a slice nests in a lane; if so it is opened there."""
    while opened and opened[-1] <= begins:
        opened.pop()
    if opened and opened[-1] < ends:
        return False
    opened.append(ends)
    return True
