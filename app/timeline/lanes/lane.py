"""Lanes: what a trace's rows look like as spans of time in rows under each other."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

Ints = npt.NDArray[np.int64]
Subject = tuple[str, str | int | None]

TABLES = (
    "steps", "batch_rows", "lifecycle", "core_spans", "spans", "counters", "allocations",
    "queue_order", "slot_tokens", "segments", "accesses", "collectives",
)  # fmt: skip
"""Tables that spans and samples are rows of; a span's `table` column indexes them."""
DIGITS = frozenset("0123456789")
SPAN_COLUMNS = {
    "lane": pl.UInt32, "start": pl.Int64, "end": pl.Int64, "state": pl.UInt8, "table": pl.UInt8,
    "ref": pl.UInt32,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the timeline; `depth` counts the sub-lanes of what ran at the same time.

        `section` is one of `sections.SECTIONS` or counters; `kind` is steps, spans or counter. Text
    comes from the trace and is made plain.
    """

    id: int
    section: str
    group: str
    label: str
    kind: str
    rank: int = 0
    depth: int = 0


@dataclass(frozen=True, slots=True)
class LaneName:
    """A lane before it has a number: where it belongs and what it is called.

    `about` is what it shows, by the ids of the trace: a request, a core and its group, a track.
    """

    rank: int
    group: str
    label: str
    about: tuple[Subject, ...] = ()


@dataclass(frozen=True, slots=True)
class LaneSpans:
    """The spans of one section in parts, each of whole lanes, which follow those before.

    A part has SPAN_COLUMNS; `lane` indexes `names`.
    """

    names: tuple[LaneName, ...]
    parts: Iterable[pl.DataFrame]


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """Sort key under which `request 2` comes before `request 10`.

    Of two numbers the longer is the larger: they may have more digits than Python reads.
    """
    parts = [part for part in re.split(r"([0-9]+)", text) if part]
    numbers = [part.lstrip("0") if part[0] in DIGITS else None for part in parts]
    return tuple(
        (1, 0, part) if number is None else (0, len(number), number)
        for part, number in zip(parts, numbers, strict=True)
    )


def placeable(trace: Trace, table: str, *needed: str) -> pl.LazyFrame:
    """Rows of a table with their numbers (`ref`), without those that have no place or time."""
    return placed(trace.table(table), *needed)


def placed(rows: pl.LazyFrame, *needed: str) -> pl.LazyFrame:
    """The same of the rows of a table."""
    return rows.with_row_index("ref").drop_nulls(["rank", "ts_ns", *needed])


def ordered(seen: pl.DataFrame) -> pl.DataFrame:
    """Number the lanes of a frame of (rank, id), by rank and then naturally by id."""
    keys = seen.rows()
    order = sorted(range(len(keys)), key=lambda i: (keys[i][0], natural(keys[i][1])))
    return seen[order].with_row_index("lane")


def clipped(expr: pl.Expr) -> pl.Expr:
    """Times cut to FAR_NS."""
    return expr.clip(-FAR_NS, FAR_NS)


def end_of(start: pl.Expr, dur_ns: pl.Expr, otherwise: int) -> pl.Expr:
    """End of what began at `start`; never before it; `otherwise` where it has no end."""
    end = clipped(start) + dur_ns.clip(0, 2 * FAR_NS)
    return pl.max_horizontal(clipped(end.fill_null(otherwise)), clipped(start))


def span_rows(frame: pl.DataFrame, table: str) -> pl.DataFrame:
    """Cut a frame with lane, start, end, state and ref down to SPAN_COLUMNS."""
    code = pl.lit(TABLES.index(table)).alias("table")
    return frame.with_columns(code).select(pl.col(n).cast(t) for n, t in SPAN_COLUMNS.items())


def several_ranks(name: str, rank: int, ranks: Sequence[int]) -> str:
    """Name of a group of lanes, with its rank where there are several."""
    if len(ranks) < 2:
        return name
    return f"rank {rank} · {name}" if name else f"rank {rank}"


def depths(lane: npt.NDArray[np.integer[Any]], start: Ints, end: Ints) -> npt.NDArray[np.int32]:
    """Sub-lane of each span, so that no two spans of a sub-lane overlap; the first that is free.

    Spans are ordered by lane, start and falling end, so that what is nested lies below what
    encloses it.
    """
    depth = np.zeros(len(lane), np.int32)
    clash = (lane[1:] == lane[:-1]) & (start[1:] < end[:-1])
    for crowded in np.unique(lane[1:][clash]):
        first, last = np.searchsorted(lane, (crowded, crowded + 1))
        depth[first:last] = _first_free(start[first:last].tolist(), end[first:last].tolist())
    return depth


def _first_free(starts: list[int], ends: list[int]) -> list[int]:
    free: list[int] = []
    running: list[tuple[int, int]] = []
    depth: list[int] = []
    for start, end in zip(starts, ends, strict=True):
        while running and running[0][0] <= start:
            heapq.heappush(free, heapq.heappop(running)[1])
        place = heapq.heappop(free) if free else len(running)
        heapq.heappush(running, (end, place))
        depth.append(place)
    return depth
