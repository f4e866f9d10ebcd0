"""The moments of a rank at which a debug session can stop: its steps, and every event."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.trace import Trace

Times = npt.NDArray[np.int64]


class Position(NamedTuple):
    """A time, and the last step whose batch was formed by then; None before the first."""

    ts_ns: int
    step: int | None


class Moments:
    """Steps in the order in which their batches were formed, and the times of all events."""

    def __init__(self, trace: Trace, rank: int) -> None:
        self._trace = trace
        self._of_rank = pl.col("rank") == rank
        steps = _formed(trace, self._of_rank)
        self.step_ns: Times = steps["ts_ns"].to_numpy()
        self.steps: list[int] = steps["step"].to_list()
        self._place = {step: place for place, step in reversed(list(enumerate(self.steps)))}

    @cached_property
    def event_ns(self) -> Times:
        """Every time at which something changed, once each, in order."""
        times = [
            self._times("lifecycle", "ts_ns"),
            self._times("allocations", "ts_ns"),
            self._times("queue_order", "ts_ns"),
            *(self._times("core_spans", at) for at in ("dispatch_ns", "ts_ns", "end_ns")),
        ]
        return np.unique(np.concatenate([*times, self.step_ns]))

    def place_of(self, step: int) -> int | None:
        """Place of a step in the order of steps; None where there is no such step."""
        return self._place.get(step)

    def step_at(self, ts_ns: int) -> int | None:
        """Place of the last step whose batch was formed by then; None before the first."""
        place = int(np.searchsorted(self.step_ns, ts_ns, "right")) - 1
        return place if place >= 0 else None

    def position(self, ts_ns: int) -> Position:
        """The position at a time."""
        place = self.step_at(ts_ns)
        return Position(ts_ns, None if place is None else self.steps[place])

    def _times(self, table: str, column: str) -> Times:
        rows = self._trace.table(table).filter(self._of_rank).select(column).drop_nulls()
        times: Times = rows.unique().collect()[column].to_numpy()
        return times


def _formed(trace: Trace, of_rank: pl.Expr) -> pl.DataFrame:
    """When each step's batch was formed: as it says, else as its rows do, else when it began."""
    rows = (
        trace.batch_rows.filter(of_rank)
        .drop_nulls(["step", "ts_ns"])
        .group_by("step")
        .agg(rows=pl.col("ts_ns").min())
    )
    begun = (
        trace.steps.filter(of_rank)
        .drop_nulls(["step", "ts_ns"])
        .group_by("step")
        .agg(begun=pl.col("ts_ns").min(), formed=pl.col("formed_ns").min())
    )
    both = begun.join(rows, on="step", how="full", coalesce=True)
    return (
        both.select("step", ts_ns=pl.coalesce("formed", "rows", "begun"))
        .sort("ts_ns", "step")
        .collect()
    )
