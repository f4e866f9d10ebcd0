"""Durations of requests that a log states: llama.cpp logs the times of a request at its end.

They are counters of the request's slot: `prompt eval time`, `eval time` and `total time`. A log
without a clock has no other durations.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.times import MS
from stepscope.ingest.trace import Trace

_STATED = {"prompt eval time": "prompt_ns", "eval time": "decode_ns", "total time": "total_ns"}


def stated_times(trace: Trace) -> pl.LazyFrame:
    """Return a row for each request whose total time is stated.

    Columns: rank, request, prompt_ns, decode_ns (null where not stated) and total_ns.
    """
    slots = trace.allocations.filter(
        pl.col("resource") == "slot", pl.col("op") == "claim", pl.col("owner").is_not_null()
    ).select(
        "rank",
        "ts_ns",
        track=pl.format("slot {}", "id"),
        request="owner",
        claim=pl.int_range(pl.len()),
    )
    stated = trace.counters.filter(
        pl.col("name").is_in([*_STATED]), pl.col("unit") == "ms", pl.col("track").is_not_null()
    ).select("rank", "ts_ns", "track", "name", "value")
    of_request = stated.sort("ts_ns").join_asof(
        slots.sort("ts_ns"), on="ts_ns", by=["rank", "track"], check_sortedness=False
    )
    ns = (pl.col("value") * MS).round().cast(pl.Int64)
    return (
        of_request.filter(pl.col("request").is_not_null())
        .group_by("rank", "request", "claim")
        .agg(ns.filter(pl.col("name") == name).last().alias(to) for name, to in _STATED.items())
        .filter(pl.col("total_ns").is_not_null())
        .sort("claim")
        .group_by("rank", "request")
        .agg(pl.col(*_STATED.values()).last())
    )
