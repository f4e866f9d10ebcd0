"""How many requests waited and ran, and how full the KV cache was, over a run."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.analyzers.views.loads import loads
from stepscope.analyzers.views.requests import turns
from stepscope.ingest.derive import states
from stepscope.ingest.trace import Trace

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FROM_STEPS, FROM_EVENTS = "what the engine told", "the events of requests"


@dataclass(frozen=True, slots=True)
class OverTime:
    """A number of a rank that holds from each of its times to the next: `ts_ns` is sorted.

    `mean` is over the time from the first to the last, None where they are one, or no times at all;
    `source` says what it is counted from.
    """

    rank: int
    ts_ns: Ints
    values: Floats
    source: str
    has_times: bool = True

    @property
    def most(self) -> float:
        """The most that it ever was."""
        return float(self.values.max())

    @property
    def mean(self) -> float | None:
        """What it was on average over the time."""
        whole = int(self.ts_ns[-1] - self.ts_ns[0]) if self.has_times else 0
        return float((self.values[:-1] * np.diff(self.ts_ns)).sum() / whole) if whole else None

    def within(self, from_ns: int, to_ns: int) -> OverTime | None:
        """The part of it from a time to just before another, None where it tells of none of it."""
        first, last = max(from_ns, int(self.ts_ns[0])), min(to_ns, int(self.ts_ns[-1]))
        if first >= to_ns or first > last:
            return None
        begin = int(np.searchsorted(self.ts_ns, first, "right")) - 1
        end = int(np.searchsorted(self.ts_ns, to_ns, "left"))
        times, values = [first, *self.ts_ns[begin + 1 : end]], [*self.values[begin:end]]
        if times[-1] < last:  # what it was last holds until then
            times, values = [*times, last], [*values, values[-1]]
        return replace(self, ts_ns=np.array(times, np.int64), values=np.array(values))


def load_over_time(trace: Trace) -> dict[str, tuple[OverTime, ...]]:
    """`num_waiting`, `num_running` and `kv_usage` (a share) over time, of the ranks that tell.

    What is not recorded is not there. Who waited is counted from requests' events where no step or
    counter of the trace says it.
    """
    told = loads(trace).collect()
    found = {name: _by_rank(told, name) for name in ("num_waiting", "num_running", "kv_usage")}
    if not found["num_waiting"]:
        found["num_waiting"] = _waiting(trace)
    has_times = trace.manifest.clock.has_times
    return {
        name: tuple(replace(line, has_times=has_times) for line in lines)
        for name, lines in found.items()
        if lines
    }


def _by_rank(told: pl.DataFrame, name: str) -> tuple[OverTime, ...]:
    known = told.filter(pl.col(name).is_not_null()).sort("rank", "ts_ns")
    return _lines(known.select("rank", "ts_ns", value=name), FROM_STEPS)


def _waiting(trace: Trace) -> tuple[OverTime, ...]:
    """How many requests waited, from when each began to and no longer did.

    Nothing where it is not known: of a list of arrivals, on no clock, and of a rank with a request
    that was served without a recorded admission, which may have waited or run until its first
    token.
    """
    if states.is_list_of_arrivals(trace) or not trace.manifest.clock.has_times:
        return ()
    unknown = pl.col("state") == states.UNKNOWN
    ranks = states.request_states(trace.lifecycle).filter(unknown).select("rank").unique()
    waits = pl.col("is_waiting").cast(pl.Int64)
    by = (waits - waits.shift(1).over("rank", "request").fill_null(0)).alias("by")
    known = turns(trace).join(ranks, on="rank", how="anti", maintain_order="left")
    changes = known.select("rank", "ts_ns", by).group_by("rank", "ts_ns").agg(pl.sum("by"))
    value = pl.col("by").cum_sum().over("rank").cast(pl.Float64)
    told = changes.sort("rank", "ts_ns").select("rank", "ts_ns", value=value).collect()
    return _lines(told, FROM_EVENTS)


def _lines(told: pl.DataFrame, source: str) -> tuple[OverTime, ...]:
    return tuple(
        OverTime(int(rank), own["ts_ns"].to_numpy(), own["value"].to_numpy(), source)
        for (rank,), own in told.group_by("rank", maintain_order=True)
    )
