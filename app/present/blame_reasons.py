"""When a request was in no batch, and what was recorded about it as each wait began.

A run that names no request waits for its GPU.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.causes import CAUSES, PARKED, QUEUE
from stepscope.app.present.facts import decision
from stepscope.ingest.trace import Trace

OUTSIDE = (QUEUE, PARKED, "preempted", "gpu-wait", "idle", "unknown")


def waits_of(intervals: pl.DataFrame) -> pl.DataFrame:
    """Those of a request's intervals, as `Blame.intervals` has them, in which it waits."""
    outside = [cause.name for cause in CAUSES if cause.group in OUTSIDE]
    return intervals.filter(pl.col("cause").is_in(outside))


def reasons(trace: Trace, waits: pl.DataFrame) -> list[str]:
    """The decision behind each of a request's waits, in words; empty where there is none."""
    if waits.is_empty():
        return []
    rank, request = waits.row(0)[:2]
    about = (pl.col("subject_kind") == "request") & (pl.col("subject") == pl.lit(request))
    known = trace.decisions.filter(about, pl.col("rank") == rank).sort("ts_ns").collect()
    if known.is_empty():
        return [""] * len(waits)
    last = known["ts_ns"].search_sorted(waits["from_ns"], "right")
    return [
        decision(known.row(at - 1, named=True)) if at and cause not in UNTOLD else ""
        for at, cause in zip(last, waits["cause"], strict=True)
    ]


UNTOLD = {"gpu-wait", "step", "idle", "unknown"}
