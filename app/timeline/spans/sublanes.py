"""Lanes on which spans overlap, spread over sub-lanes on which none does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.timeline.lanes.lane import depths
from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.packed import Ints
from stepscope.ingest.derive.axis import Axis

Lanes = npt.NDArray[np.uint32]
Arranged = tuple[npt.NDArray[np.integer[Any]], Lanes]


def in_sublanes(spans: pl.DataFrame, num_lanes: int) -> tuple[pl.DataFrame, Ints]:
    """Spread spans that overlap over sub-lanes, ordered by lane and start.

    Gives the spans with new lane numbers, and how many sub-lanes each lane has become (at least 1).
    """
    lane, start, end = (spans[name].to_numpy() for name in ("lane", "start", "end"))
    num_sublanes = np.ones(num_lanes, np.int64)
    arranged = _at_once if compiled.IS_COMPILED else _by_arrays
    found = arranged(lane, start, end, num_sublanes)
    if found is None:
        return spans, num_sublanes
    order, sublane = found
    return spans[order].with_columns(lane=pl.Series(sublane[order])), num_sublanes


def _at_once(lane: Lanes, start: Ints, end: Ints, num_sublanes: Ints) -> Arranged | None:
    """As `_by_arrays` does, in one pass."""
    order, sublane = np.empty((2, len(lane)), np.uint32)
    is_new = compiled.passes.arrange(lane, start, end, order, sublane, num_sublanes)
    return (order, sublane) if is_new else None


def _by_arrays(lane: Lanes, start: Ints, end: Ints, num_sublanes: Ints) -> Arranged | None:
    """The order of rows by sub-lane and start, and the sub-lane of each; counts those of lanes.

    None where all stay as they are.
    """
    is_ordered = _is_ordered(lane, start, end)
    order = np.arange(len(lane)) if is_ordered else _in_order(lane, start, end)
    of_order = lane[order]
    depth = depths(of_order, start[order], end[order])
    if not depth.any():
        return None if is_ordered else (order, lane)
    begins = np.flatnonzero(np.diff(of_order, prepend=of_order[0] + 1))
    num_sublanes[of_order[begins]] = np.maximum.reduceat(depth, begins) + 1
    first = np.concatenate(([0], np.cumsum(num_sublanes)[:-1]))
    sublane = np.empty_like(lane)
    sublane[order] = first[of_order] + depth
    return order[_by_number(sublane[order])], sublane  # each by start as it was


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


def _is_ordered(lane: Lanes, start: Ints, end: Ints) -> bool:
    """Whether spans are by lane, start and falling end, as most are from the beginning."""
    before, lane = lane[:-1], lane[1:]
    if not (before <= lane).all():
        return False
    follows = start[1:] > start[:-1]
    follows |= (start[1:] == start[:-1]) & (end[1:] <= end[:-1])
    follows |= before < lane
    return bool(follows.all())
