"""How fast requests were served in two runs: time to first token, time per output token."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from stepscope.ingest.trace import Trace

STATISTICS = ("mean", "median", "p99")
MEASURES = ("ttft", "tpot")


@dataclass(frozen=True, slots=True)
class Served:
    """How fast the requests were that finished in both runs, in ns: (one, other) by statistic.

    TTFT is from the arrival at the engine to the engine's first token, without the front end, which
    is not replayed; TPOT is the engine TPOT of `analyzers/summary/latencies.py`.
    """

    num_requests: int
    times: dict[str, dict[str, tuple[float, float]]]
    of_each: dict[str, float]
    """By what share a request's own time is off, in the median of all requests."""

    def error(self, measure: str, statistic: str) -> float | None:
        """By how much the other run is off the one, as a share of it; None where that is 0."""
        one, other = self.times[measure][statistic]
        return None if one == 0 else other / one - 1


def served(one: Trace, other: Trace, among: Collection[str] | None = None) -> Served:
    """Compare the requests that finished in both, of `among` where it is given."""
    both = _times(one).join(_times(other), on=("rank", "request"), suffix="_other")
    if among is not None:
        both = both.filter(pl.col("request").is_in(list(among)))
    found = {
        measure: {
            statistic: (_of(both, measure, statistic), _of(both, f"{measure}_other", statistic))
            for statistic in STATISTICS
        }
        for measure in MEASURES
        if len(both.drop_nulls([measure, f"{measure}_other"]))
    }
    return Served(len(both), found, {measure: _of_each(both, measure) for measure in found})


def _of_each(both: pl.DataFrame, measure: str) -> float:
    known = both.filter(pl.col(measure) > 0)
    off = (known[f"{measure}_other"] / known[measure] - 1).abs().median()
    return float(off) if isinstance(off, float) else 0.0


def _of(rows: pl.DataFrame, name: str, statistic: str) -> float:
    column = rows[name].drop_nulls()
    if statistic == "mean":
        found = column.mean()
    else:
        found = column.quantile(0.5 if statistic == "median" else 0.99, "linear")
    assert isinstance(found, float | int)
    return float(found)


def _times(trace: Trace) -> pl.DataFrame:
    """rank, request, ttft, tpot of those that finished."""
    event, ts_ns = pl.col("event"), pl.col("ts_ns")
    ended = event == "finish"
    times = trace.lifecycle.group_by("rank", "request").agg(
        arrived=ts_ns.filter(event == "arrive").min(),
        first=ts_ns.filter(event == "first-token").min(),
        last=ts_ns.filter(ended).max(),
        number=pl.col("num_generated").filter(ended).max(),
    )
    later = pl.col("number") - 1
    return (
        times.filter(pl.col("last").is_not_null())
        .select(
            "rank", "request",
            ttft=(pl.col("first") - pl.col("arrived")).cast(pl.Float64),
            tpot=pl.when(later > 0).then((pl.col("last") - pl.col("first")) / later),
        )
        .collect()
    )  # fmt: skip
