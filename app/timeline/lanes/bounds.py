"""From when to when a trace reaches."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.app.timeline.lanes.lane import clipped, end_of, placeable
from stepscope.ingest.trace import Trace

EMPTY = (0, 1_000)
DURATIONS = {"steps": "dur_ns", "spans": "dur_ns", "collectives": "dur_ns"}
TIMED = (
    "steps", "batch_rows", "lifecycle", "decisions", "core_spans", "spans", "counters", "segments",
    "accesses", "collectives", "allocations",
)  # fmt: skip


def bounds_of(trace: Trace, read: Mapping[str, pl.LazyFrame] | None = None) -> tuple[int, int]:
    """[first, last) of all that a trace can show, instants too; EMPTY where it has nothing.

    `read` has the rows of some tables that have a rank and a time, where these were read before.
    """
    rows = {table: placeable(trace, table) for table in TIMED} | {**(read or {})}
    found = pl.collect_all([_extent(rows[table], table) for table in TIMED])
    known = [extent.row(0) for extent in found if extent["first"][0] is not None]
    if not known:
        return EMPTY
    first = min(extent[0] for extent in known)
    return first, max(extent[1] for extent in known)


def _extent(rows: pl.LazyFrame, table: str) -> pl.LazyFrame:
    start = pl.col("ts_ns")
    last = [clipped(start.max()) + 1]
    if table in DURATIONS:
        last.append(end_of(start, pl.col(DURATIONS[table]).fill_null(0), 0).max())
    if table == "core_spans":
        last.append(clipped(pl.col("end_ns").max()))
        start = pl.min_horizontal(start, "dispatch_ns")
    return rows.select(first=clipped(start.min()), last=pl.max_horizontal(last))
