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
NUM_NESTING_LANES = 16


@dataclass(frozen=True, slots=True)
class _Slices:
    """Slices sorted by track, start and falling end; arrays of one length."""

    track: Ints
    start: Ints
    end: Ints

    def tracks(self) -> list[slice]:
        """The stretch of each track."""
        borders = np.flatnonzero(np.diff(self.track)) + 1
        starts = [0, *borders.tolist()]
        ends = [*borders.tolist(), len(self.track)]
        return [slice(a, b) for a, b in zip(starts, ends, strict=True) if a < b]


def with_lanes(spans: pl.DataFrame) -> pl.DataFrame:
    """Sort spans by track and time, give them sub-lanes (`#2`, ...), ids and parents.

    Takes a spans frame with at least track, ts_ns, dur_ns and form; gives all its columns with
    `track` suffixed where needed, `span` (0, 1, ...) and `parent`. Instants have neither lane of
    their own nor parent; a slice without an end outlasts all that have one.
    """
    ends = pl.col("ts_ns") + pl.col("dur_ns").clip(lower_bound=1)
    horizon = pl.max_horizontal(ends.max(), pl.col("ts_ns").max()) + 1
    is_instant = pl.col("form") == "instant"
    ended = spans.with_columns(
        pl.when(is_instant).then("ts_ns").otherwise(ends.fill_null(horizon)).alias("_end")
    )
    lasting = _sorted(ended.filter(~is_instant))
    lanes = _lanes(_slices(lasting))
    names = _lane_names(lasting["track"], lanes, taken=set(spans["track"].unique()))
    placed = _sorted(pl.concat([lasting.with_columns(names), ended.filter(is_instant)]))
    placed = placed.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("span"))
    return placed.join(
        _enclosing(placed.filter(~is_instant)), on="span", how="left", maintain_order="left"
    ).drop("_end")


def _enclosing(lasting: pl.DataFrame) -> pl.DataFrame:
    parents, _ = _parents(_slices(lasting))
    found = lasting.select("span", pl.Series("_row", parents)).filter(pl.col("_row") >= 0)
    return found.select("span", lasting["span"].gather(found["_row"]).alias("parent"))


def _sorted(spans: pl.DataFrame) -> pl.DataFrame:
    return spans.sort("track", "ts_ns", -pl.col("_end"), maintain_order=True)


def _slices(spans: pl.DataFrame) -> _Slices:
    track = spans["track"].rle_id().cast(pl.Int64).to_numpy()
    return _Slices(track, spans["ts_ns"].to_numpy(), spans["_end"].to_numpy())


def _lane_names(tracks: pl.Series, lanes: Ints, taken: set[str]) -> pl.Series:
    lane = pl.Series("lane", lanes)
    pairs = pl.DataFrame({"track": tracks, "lane": lane})
    names: list[str] = []
    distinct = pairs.unique(maintain_order=True)
    for track, number in distinct.iter_rows():
        name = track
        suffix = number + 1
        while number and (name == track or name in taken):
            name = f"{track} #{suffix}"
            suffix += 1
        taken.add(name)
        names.append(name)
    named = distinct.with_columns(pl.Series("name", names, pl.String))
    joined = pairs.join(named, on=["track", "lane"], how="left", maintain_order="left")
    return joined["name"].alias("track")


def _lanes(slices: _Slices) -> Ints:
    lanes = np.zeros(len(slices.track), np.int64)
    crossing = _parents(slices)[1]
    for stretch in slices.tracks():
        if crossing[stretch].any():
            lanes[stretch] = _dealt(slices.start[stretch], slices.end[stretch])
    return lanes


def _parents(slices: _Slices) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The innermost slice open where each begins (-1: none), and which ones outlast theirs.

    A track nests if and only if none outlasts its parent. Depth is the number of slices that
    have begun and not ended; the parent is the latest slice one level up.
    """
    num = len(slices.track)
    depth = np.empty(num, np.int64)
    for stretch in slices.tracks():
        ends = np.sort(slices.end[stretch])
        ended = np.searchsorted(ends, slices.start[stretch], side="right")
        depth[stretch] = np.arange(len(ends)) - ended
    level = depth * num + np.arange(num)
    order = np.argsort(level)
    above = np.searchsorted(level[order], level - num) - 1
    parents = np.where(depth > 0, order[np.maximum(above, 0)], -1)
    outlasts = (parents >= 0) & (slices.end > slices.end[parents])
    return parents, outlasts


def _dealt(start: Ints, end: Ints) -> list[int]:
    """A lane for each slice of a track whose slices cross: the first in which it nests.

    Beyond `NUM_NESTING_LANES` lanes hold slices one after the other, so that hostile files take
    n log n and not n squared.
    """
    open_ends: list[list[int]] = []
    flat: list[tuple[int, int]] = []
    lanes = []
    for begins, ends in zip(start.tolist(), end.tolist(), strict=True):
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
