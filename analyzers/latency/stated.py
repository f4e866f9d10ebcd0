"""Blame for a trace without a clock: the times that the log itself states for each request.

Such a request begins at 0, because its arrival is not known. Its latency is the stated total time:
the eval time is decode, and the time before it is prefill.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.causes import CAUSES
from stepscope.analyzers.views.requests import REQUEST, ends
from stepscope.ingest.derive.stated_times import stated_times
from stepscope.ingest.trace import Trace


def stated_requests(trace: Trace) -> pl.DataFrame:
    """Return a row for each request, in the order of their first events.

        Columns: rank, request, outcome, and prefill_ns, decode_ns, unknown_ns and their sum
    latency_ns, which are null if the log does not state a total time.
    """
    named = trace.lifecycle.filter(pl.col("request").is_not_null())
    every = named.group_by(REQUEST).agg(pl.col("ts_ns").min())
    total, decode = pl.col("total_ns"), pl.col("decode_ns")
    decoded = pl.min_horizontal(decode, total)
    return (
        every.join(stated_times(trace), on=REQUEST, how="left")
        .join(ends(trace).select(*REQUEST, "outcome"), on=REQUEST, how="left")
        .sort("ts_ns", *REQUEST)
        .select(
            *REQUEST, "outcome", latency_ns="total_ns",
            prefill_ns=pl.when(decode.is_not_null()).then(total - decoded).otherwise(total * 0),
            decode_ns=pl.when(total.is_not_null()).then(decoded.fill_null(0)),
            unknown_ns=pl.when(decode.is_null()).then(total).otherwise(total * 0),
        )
        .collect()
    )  # fmt: skip


def stated_tables(requests: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Return `Blame.requests`, `to_first_token` and `intervals` for `stated_requests`."""
    known = requests.filter(pl.col("latency_ns").is_not_null())
    has_first = pl.col("decode_ns") > 0
    zeros = {cause.column: pl.lit(0, pl.Int64) for cause in CAUSES}
    own = {name: pl.col(name) for name in ("prefill_ns", "decode_ns", "unknown_ns")}
    about = {
        "arrive_ns": pl.lit(0, pl.Int64),
        "first_token_ns": pl.when(has_first).then("prefill_ns"),
        "engine_first_token_ns": pl.when(has_first).then("prefill_ns"),
        "ended_ns": pl.col("latency_ns"),
        "outcome": pl.col("outcome"),
        "latency_ns": pl.col("latency_ns"),
    }
    table = known.select(*REQUEST, **about, **{**zeros, **own})
    before = table.with_columns(decode_ns=pl.lit(0, pl.Int64))
    return table, before, _intervals(known)


def _intervals(known: pl.DataFrame) -> pl.DataFrame:
    names = pl.Enum([cause.name for cause in CAUSES])
    prefill, whole = pl.col("prefill_ns"), pl.col("latency_ns")
    parts = [
        known.select(
            *REQUEST, from_ns=begin, to_ns=end, is_before_first=pl.lit(cause != "decode"),
            cause=pl.lit(cause).cast(names), ns=end - begin,
        )
        for cause, begin, end in (
            ("prefill", prefill * 0, prefill),
            ("decode", prefill, prefill + pl.col("decode_ns")),
            ("unknown", whole - pl.col("unknown_ns"), whole),
        )
    ]  # fmt: skip
    return pl.concat(parts).filter(pl.col("ns") > 0).sort(*REQUEST, "from_ns")
