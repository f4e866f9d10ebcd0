"""Lanes on which spans overlap, spread over sub-lanes on which none does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes.lane import depths
from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.packed import Ints
from stepscope.ingest.derive.axis import Axis

Lanes = npt.NDArray[np.uint32]


def in_sublanes(spans: pl.DataFrame, num_lanes: int) -> tuple[pl.DataFrame, Ints]:
    """Spread spans that overlap over sub-lanes, ordered by lane and start.

    Gives the spans with new lane numbers, and how many sub-lanes each lane has become (at least 1).
    """
    lane, start, end = (spans[name].to_numpy() for name in ("lane", "start", "end"))
    order, depth = None, _dealt_out(lane, start, end)
    if depth is None:
        order = _in_order(lane, start, end)
        lane = lane[order]
        depth = _dealt_out(lane, start[order], end[order])
        assert depth is not None
    num_sublanes = np.ones(num_lanes, np.int64)
    if depth.any():
        begins = np.flatnonzero(np.diff(lane, prepend=lane[0] + 1))
        num_sublanes[lane[begins]] = np.maximum.reduceat(depth, begins) + 1
        first = np.concatenate(([0], np.cumsum(num_sublanes)[:-1]))
        lane = (first[lane] + depth).astype(np.uint32)
        by_lane = _by_number(lane)  # each by start as it was
        order, lane = by_lane if order is None else order[by_lane], lane[by_lane]
    if order is None:
        return spans, num_sublanes
    return spans[order].with_columns(lane=pl.Series(lane)), num_sublanes


def _in_order(lane: Lanes, start: Ints, end: Ints) -> Ints:
    """The order of spans by lane, start and falling end; what is the same stays as it was."""
    order = _by_number(lane)
    # By lanes, most files are stretches that are sorted already: these cost next to nothing.
    axis = Axis.of([lane], (start,))
    at = axis.at(lane, start)
    order = order[np.argsort(at[order], kind="stable")]
    at, end = at[order], end[order]
    if ((at[1:] > at[:-1]) | (end[1:] <= end[:-1])).all():
        return order
    return order[np.lexsort((-end, at))]


def _by_number(numbers: Lanes) -> Ints:
    """The order of numbers, in which equal ones stay as they are."""
    # NumPy counts numbers of two bytes instead of comparing them.
    narrow = numbers.astype(np.uint16) if numbers.max(initial=0) < 1 << 16 else numbers
    return np.argsort(narrow, kind="stable")


def _dealt_out(lane: Lanes, start: Ints, end: Ints) -> npt.NDArray[np.int32] | None:
    """The sub-lane of each span; None where they are not in order."""
    if not compiled.IS_COMPILED:
        return depths(lane, start, end) if _is_ordered(lane, start, end) else None
    depth = np.empty(len(lane), np.int32)
    is_deep = compiled.passes.deal_out(lane, start, end, depth)
    return None if is_deep is None else depth


def _is_ordered(lane: Lanes, start: Ints, end: Ints) -> bool:
    """Whether spans are by lane, start and falling end, as most are from the beginning."""
    before, lane = lane[:-1], lane[1:]
    if not (before <= lane).all():
        return False
    follows = start[1:] > start[:-1]
    follows |= (start[1:] == start[:-1]) & (end[1:] <= end[:-1])
    follows |= before < lane
    return bool(follows.all())
