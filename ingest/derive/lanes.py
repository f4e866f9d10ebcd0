"""Sub-lanes for slices that overlap in part, and the slice that encloses each slice.

Slices of a track nest when each pair is disjoint or one holds the other; a timeline can stack
those. Files hold others too. They are dealt out to sub-lanes, in each of which slices nest.
Identical slices nest in the order given, that of the rows or another; a slice without duration
takes one nanosecond.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.axis import NONE, Ints, Tracks, numbered
from stepscope.ingest.derive.nesting import Lanes, nested


def with_lanes(spans: pl.DataFrame, order: pl.Series | None = None) -> pl.DataFrame:
    """Give spans sub-lanes (`#2`, ...), ids and parents; their order stays as it is.

    Takes a spans frame with at least track (text or an Enum), ts_ns, dur_ns and form, and a number
    for each row where identical slices nest in another order than that of the rows; gives all its
    columns with `track` suffixed where needed (an Enum is extended), `span` (the number of the row)
    and `parent`. Instants have neither lane of their own nor parent; a slice without an end
    outlasts all that have one.
    """
    names, track = numbered(spans["track"])
    is_slice = (spans["form"] != "instant").to_numpy()
    start = spans["ts_ns"].to_numpy()
    numbers = None if order is None else order.to_numpy()
    around, lane = nested(track, start, _ends(start, spans["dur_ns"]), is_slice, numbers)
    parent = pl.Series("parent", around)
    laned = spans.with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("span"), parent.set(parent == NONE, None)
    )
    if not lane.any():
        return laned
    split, number = _split(names.to_list(), track, lane)
    dtype = pl.Enum(split) if isinstance(spans.schema["track"], pl.Enum) else pl.String
    return laned.with_columns(pl.Series("track", split, dtype).gather(number))


def _ends(start: Ints, dur_ns: pl.Series) -> Ints:
    has_nulls = dur_ns.null_count() > 0
    lasting = dur_ns.fill_null(0) if has_nulls else dur_ns
    end: Ints = start + np.maximum(lasting.to_numpy(), 1)
    if has_nulls:
        end[dur_ns.is_null().to_numpy()] = end.max() + 1
    return end


def _split(
    names: list[str], track: Tracks, lane: Lanes
) -> tuple[list[str], npt.NDArray[np.uint32]]:
    """The names of tracks and further lanes, numbered on, and the number of each row's."""
    extra = np.flatnonzero(lane)
    most = np.int64(lane.max()) + 1
    lanes, which = np.unique(track[extra] * most + lane[extra], return_inverse=True)
    number = track.astype(np.uint32)
    number[extra] = len(names) + which
    split, taken, num_lanes = list(names), set(names), Counter(range(len(names)))
    for owner in (lanes // most).tolist():
        num_lanes[owner] += 1
        split.append(_free_name(names[owner], num_lanes[owner], taken))
    return split, number


def _free_name(track: str, number: int, taken: set[str]) -> str:
    name = f"{track} #{number}"
    while name in taken:
        number += 1
        name = f"{track} #{number}"
    taken.add(name)
    return name
