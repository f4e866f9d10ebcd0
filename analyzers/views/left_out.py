"""Why requests are left out of batches, and from when until when that held.

What a decision names as its resource is a word of the schema: either something that was short or
that stood in the way, or one of NOT_READY. A trace without such words says in the engine's own
only why a request was not ready, and names no resource.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.once import once
from stepscope.analyzers.views.requests import REQUEST, turns
from stepscope.ingest.schema import NOT_READY
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

_TOLD = ("resource", "reason", "needed", "available", "holder")
OWN_CAP = "lora"
"""A cap on something that the others in the queue do not need."""
BARS = ("pause", "dp-throttle", "preemption")
"""What keeps everybody out, whatever room there is and whoever is ready."""


def is_not_ready() -> pl.Expr:
    """Whether a request that was deferred was not ready itself, by the engine's account."""
    is_told = pl.col("resource").is_null() & pl.col("reason").is_not_null()
    return is_told | pl.col("resource").is_in(NOT_READY).fill_null(value=False)


def is_passed_by() -> pl.Expr:
    """Whether a request that was deferred was not ready, or lacked what others do not need."""
    return is_not_ready() | (pl.col("resource") == OWN_CAP).fill_null(value=False)


def left_out(trace: Trace) -> pl.LazyFrame:
    """What was told of each waiting request that was deferred, and held for some time.

    Columns: rank, request, step, resource, reason, needed, available, holder, ts_ns (since when),
    end_ns: until something else was told of it, it was preempted anew, left the queue or ended;
    far where nothing of that came. One of which no event is recorded is taken for waiting.
    """
    return _told(trace).filter("is_waiting").drop("is_waiting")


def not_ready(trace: Trace) -> pl.LazyFrame:
    """The same of requests that run, of those that were not ready: they could not be in a batch.

    Such as one whose last token is under way in an engine that schedules ahead.
    """
    return _told(trace).filter(~pl.col("is_waiting"), is_not_ready()).drop("is_waiting")


def _told(trace: Trace) -> pl.LazyFrame:
    return once(trace, "told", lambda: _of_deferred(trace))


def _of_deferred(trace: Trace) -> pl.LazyFrame:
    is_left_out = (pl.col("subject_kind") == "request") & (pl.col("verdict") == "deferred")
    told = trace.decisions.filter(is_left_out, pl.col("ts_ns").is_not_null()).select(
        "rank", "step", *_TOLD, pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
        request="subject", is_told=pl.lit(value=True),
    )  # fmt: skip
    moved = turns(trace).select(*REQUEST, "ts_ns", "is_waiting", is_told=pl.lit(value=False))
    # Of one moment, what happened goes before what is told of it then.
    return (
        pl.concat([told, moved], how="diagonal")
        .sort(*REQUEST, "ts_ns", "is_told", *_TOLD, nulls_last=True)
        .with_columns(
            pl.col("is_waiting").forward_fill().over(REQUEST).fill_null(value=True),
            end_ns=pl.col("ts_ns").shift(-1).over(REQUEST).fill_null(FAR_NS),
        )
        .filter("is_told", pl.col("end_ns") > pl.col("ts_ns"))
        .drop("is_told")
    )


def holding(rows: pl.LazyFrame, at: str, told: pl.LazyFrame) -> pl.LazyFrame:
    """Add `told_` columns: which of `told` came last and still held at the time `at`.

    Only what came last is looked at: where that no longer holds, the columns are null.
    """
    columns = ("resource", "reason", "needed", "available", "ts_ns", "end_ns", "step")
    last = (
        told.sort("ts_ns", "request", *_TOLD, nulls_last=True)
        .unique(["rank", "ts_ns"], keep="last", maintain_order=True)
        .select("rank", *(pl.col(name).alias(f"told_{name}") for name in columns))
    )
    still = pl.col("told_end_ns") > pl.col(at)
    found = rows.sort(at).join_asof(
        last, left_on=at, right_on="told_ts_ns", by="rank", check_sortedness=False
    )
    named = (f"told_{name}" for name in columns)
    return found.with_columns(pl.when(still).then(name).alias(name) for name in named)


def num_holding(rows: pl.LazyFrame, at: str, told: pl.LazyFrame, into: str) -> pl.LazyFrame:
    """Add `into`: of how many requests one of `told` held at the time `at`."""
    begun = told.select("rank", moment="ts_ns", change=pl.lit(1))
    ended = told.select("rank", moment="end_ns", change=pl.lit(-1))
    held = (
        pl.concat([begun, ended])
        .group_by("rank", "moment")
        .agg(pl.col("change").sum())
        .sort("rank", "moment")
        .select("rank", "moment", pl.col("change").cum_sum().over("rank").alias(into))
        .sort("moment")
    )
    found = rows.sort(at).join_asof(
        held, left_on=at, right_on="moment", by="rank", check_sortedness=False
    )
    return found.with_columns(pl.col(into).fill_null(0)).drop("moment")
