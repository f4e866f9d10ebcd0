"""The time between two tokens of a request."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.batches import tokens
from stepscope.analyzers.views.requests import REQUEST
from stepscope.ingest.trace import Trace


def token_gaps(trace: Trace) -> pl.LazyFrame:
    """Each token of a request but the first: rank, request, from_ns, ts_ns, last_step and gap_ns.

    `from_ns` is when the token before it was written, `gap_ns` how long that had been; `last_step`
    is the step of the token.
    """
    return (
        tokens(trace)
        .select(*REQUEST, "ts_ns", last_step="step", _request=pl.struct(REQUEST).hash())
        .sort("ts_ns", "last_step")
        .with_columns(from_ns=pl.col("ts_ns").shift(1).over("_request"))
        .with_columns(gap_ns=pl.col("ts_ns") - pl.col("from_ns"))
        .filter(pl.col("gap_ns").is_not_null())
        .drop("_request")
    )
