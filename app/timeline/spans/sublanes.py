"""Lanes on which spans overlap, spread over sub-lanes on which none does."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes.lane import depths
from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.packed import Ints


def in_sublanes(spans: pl.DataFrame, num_lanes: int) -> tuple[pl.DataFrame, Ints]:
    """Spread spans that overlap over sub-lanes, ordered by lane and start.

    Gives the spans with new lane numbers, and how many sub-lanes each lane has become (at least 1).
    """
    depth = _dealt_out(spans)
    if depth is None:
        order = ["lane", "start", "end"]
        spans = spans.sort(order, descending=[False, False, True], maintain_order=True)
        depth = _dealt_out(spans)
        assert depth is not None
    num_sublanes = np.ones(num_lanes, np.int64)
    if not depth.any():
        return spans, num_sublanes
    lane = spans["lane"].to_numpy()
    begins = np.flatnonzero(np.diff(lane, prepend=lane[0] + 1))
    num_sublanes[lane[begins]] = np.maximum.reduceat(depth, begins) + 1
    first = np.concatenate(([0], np.cumsum(num_sublanes)[:-1]))
    spans = spans.with_columns(pl.Series("lane", first[lane] + depth).cast(pl.UInt32))
    return _by_lane(spans), num_sublanes  # each by start as it was


def _by_lane(spans: pl.DataFrame) -> pl.DataFrame:
    """Spans in the order of their lanes, those of each lane as they were."""
    lane = spans["lane"].to_numpy()
    # NumPy counts numbers of two bytes instead of comparing them.
    narrow = lane.astype(np.uint16) if lane.max(initial=0) < 1 << 16 else lane
    return spans[np.argsort(narrow, kind="stable")]


def _dealt_out(spans: pl.DataFrame) -> npt.NDArray[np.int32] | None:
    """The sub-lane of each span; None where they are not in order."""
    lane, start, end = _columns(spans)
    if not compiled.IS_COMPILED:
        return depths(lane, start, end) if _is_ordered(lane, start, end) else None
    depth = np.empty(len(lane), np.int32)
    is_deep = compiled.passes.deal_out(lane, start, end, depth)
    return None if is_deep is None else depth


def _columns(spans: pl.DataFrame) -> tuple[npt.NDArray[np.uint32], Ints, Ints]:
    return spans["lane"].to_numpy(), spans["start"].to_numpy(), spans["end"].to_numpy()


def _is_ordered(lane: npt.NDArray[np.uint32], start: Ints, end: Ints) -> bool:
    """Whether spans are by lane, start and falling end, as most are from the beginning."""
    before, lane = lane[:-1], lane[1:]
    if not (before <= lane).all():
        return False
    follows = start[1:] > start[:-1]
    follows |= (start[1:] == start[:-1]) & (end[1:] <= end[:-1])
    follows |= before < lane
    return bool(follows.all())
