"""The requests: waiting, prefill, decode, preempted, recompute, one lane each.

A batch row is a span from the time when its batch was formed to the end of its step. Between
arriving, being put back or deferred and being admitted a request waits. It counts as preempted
until the step that took its place has ended (until it is resumed, when that step is not known).
"""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.plain import plain
from stepscope.app.timeline.lanes import (
    LaneName,
    Strips,
    clipped,
    end_of,
    ordered,
    placeable,
    several_ranks,
    span_rows,
)
from stepscope.ingest.trace import Trace

KEY = ["rank", "request"]
TABLES = ("batch_rows", "lifecycle")
QUEUEING = ("arrive", "preempt", "defer")


def request_strips(trace: Trace, last_ns: int) -> Strips:
    """Lay out `batch_rows` and `lifecycle`; what has not ended reaches `last_ns`."""
    ends = step_ends(trace, last_ns)
    computed, queued = _computed(trace, ends), _queued(trace, ends, last_ns)
    lanes = ordered(_seen(trace))
    ranks = lanes["rank"].unique().to_list()
    names = tuple(
        LaneName(rank, several_ranks("", rank, ranks), plain(request), (("request", request),))
        for rank, request in lanes.select(KEY).iter_rows()
    )
    rows = [
        span_rows(frame.join(lanes, on=KEY), table)
        for frame, table in ((computed, "batch_rows"), (queued, "lifecycle"))
    ]
    return Strips(names, pl.concat(rows))


def _seen(trace: Trace) -> pl.DataFrame:
    seen = [placeable(trace, table, "request").select(KEY) for table in TABLES]
    return pl.concat(seen).unique().collect()


def step_ends(trace: Trace, last_ns: int) -> pl.DataFrame:
    """When each step of each rank ended; the first row of a step speaks for it."""
    ended = end_of(pl.col("ts_ns"), pl.col("dur_ns"), last_ns).alias("step_end")
    steps = placeable(trace, "steps", "step").select("rank", "step", ended)
    return steps.unique(["rank", "step"], keep="first", maintain_order=True).collect()


def _computed(trace: Trace, ends: pl.DataFrame) -> pl.DataFrame:
    state = (
        pl.when(pl.col("is_recompute").fill_null(value=False))
        .then(palette.RECOMPUTE)
        .when(pl.col("phase") == "prefill")
        .then(palette.PREFILL)
        .otherwise(palette.DECODE)
    )
    start = clipped(pl.col("ts_ns"))
    return (
        placeable(trace, "batch_rows", "request")
        .select(*KEY, "ref", "step", start=start, state=state)
        .join(ends.lazy(), on=["rank", "step"], how="left")
        .with_columns(end=pl.max_horizontal("start", "step_end"))
        .collect()
    )


def _queued(trace: Trace, ends: pl.DataFrame, last_ns: int) -> pl.DataFrame:
    left = clipped(pl.col("ts_ns").shift(-1).over(KEY, order_by=["ts_ns", "ref"]))
    waits = (
        placeable(trace, "lifecycle", "request")
        .filter(pl.col("event") != "first-token")
        .select(*KEY, "ref", "step", "event", start=clipped(pl.col("ts_ns")), left=left)
        .filter(pl.col("event").is_in(QUEUEING))
        .join(ends.lazy(), on=["rank", "step"], how="left")
        .with_columns(end=pl.max_horizontal("start", pl.col("left").fill_null(last_ns)))
        .collect()
    )
    was_preempted = pl.col("event") == "preempt"
    is_in_step = pl.col("step_end") > pl.col("start")
    mark_end = pl.when(is_in_step).then(pl.min_horizontal("step_end", "end")).otherwise("end")
    marked = waits.with_columns(mark_end=pl.when(was_preempted).then(mark_end).otherwise("start"))
    parts = [
        marked.with_columns(end=pl.col("mark_end"), state=pl.lit(palette.PREEMPTED)),
        marked.with_columns(start=pl.col("mark_end"), state=pl.lit(palette.WAITING)),
    ]
    return pl.concat(parts).filter(pl.col("start") < pl.col("end"))
