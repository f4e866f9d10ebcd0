"""By what two traces are laid on each other: by time, by step, or by a request's arrival."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from stepscope.app.paired.time_map import TimeMap
from stepscope.app.printable import plain
from stepscope.app.timeline import Composition, Timeline
from stepscope.ingest.trace import Trace

By = Literal["time", "step", "request"]
Who = tuple[int, str]
"""A request: its rank and its id, as A calls it."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """How B lies on A; `who` is the request by whose arrival, where it is by one.

    `said` tells it in words, and `anchored` from when to when of A's time it is more than a guess:
    beyond it there is no counterpart, and time goes on as it is.
    """

    by: By
    who: Who | None
    map: TimeMap
    said: str
    anchored: tuple[int, int] | None = None

    @property
    def spelled(self) -> str:
        """What stands for it in an address."""
        return self.by if self.who is None else f"request:{self.who[0]}:{self.who[1]}"


@dataclass(frozen=True, slots=True)
class Side:
    """What is aligned of one trace: its rows, its lanes and its steps."""

    trace: Trace
    timeline: Timeline
    composition: Composition


def has_steps_in_common(a: Side, b: Side) -> bool:
    """Whether steps of the walked ranks have numbers in common."""
    return bool(len(np.intersect1d(a.composition.step, b.composition.step)))


def by_time(a: Side, b: Side) -> Alignment:
    """First arrival on first arrival; else first step on first step, else first row on first."""
    for what, first in (("arrival", _first_arrival), ("step", _first_step)):
        starts = first(a), first(b)
        if starts[0] is not None and starts[1] is not None:
            pair = TimeMap.through([(starts[0], starts[1])])
            return Alignment("time", None, pair, f"time since the first {what}")
    pair = TimeMap.through([(a.timeline.bounds[0], b.timeline.bounds[0])])
    return Alignment("time", None, pair, "time since the first row")


def by_step(a: Side, b: Side) -> Alignment | None:
    """Each step on the step of its number; None where no steps have one in common."""
    common, in_a, in_b = np.intersect1d(a.composition.step, b.composition.step, return_indices=True)
    if not len(common):
        return None
    ours, theirs = a.composition.formed_ns[in_a], b.composition.formed_ns[in_b]
    found = TimeMap.through(zip(ours.tolist(), theirs.tolist(), strict=True))
    first, last = int(common.min()), int(common.max())
    said = f"step, {first:,} to {last:,} in both"
    return Alignment("step", None, found, said, (int(found.a[0]), int(found.a[-1])))


def by_request(a: Side, b: Side, who: Who, called_in_b: str) -> Alignment | None:
    """A request's arrival on its arrival; None where one of the two does not tell of it."""
    ours = _arrival(a.trace, who)
    theirs = _arrival(b.trace, (who[0], called_in_b))
    if ours is None or theirs is None:
        return None
    said = f"arrival of request {plain(who[1])}"
    return Alignment("request", who, TimeMap.through([(ours, theirs)]), said)


def _first_arrival(side: Side) -> int | None:
    return _earliest(side.trace.lifecycle.filter(pl.col("event") == "arrive"))


def _first_step(side: Side) -> int | None:
    formed = side.composition.formed_ns
    return int(formed[0]) if len(formed) else None


def _arrival(trace: Trace, who: Who) -> int | None:
    """When a request is first told of: it arrived, or is in the first batch that has it."""
    is_it = (pl.col("rank") == who[0]) & (pl.col("request") == who[1])
    tables: Iterator[pl.LazyFrame] = (
        each.filter(is_it)
        for each in (
            trace.lifecycle.filter(pl.col("event") == "arrive"), trace.lifecycle, trace.batch_rows,
        )
    )  # fmt: skip
    return next((found for each in tables if (found := _earliest(each)) is not None), None)


def _earliest(rows: pl.LazyFrame) -> int | None:
    found = rows.select(pl.col("ts_ns").min()).collect().item()
    return None if found is None else int(found)
