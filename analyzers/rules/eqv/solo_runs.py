"""Tokens beside their solo runs: what the model computed for a request, and what it does alone."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.batches import tokens
from stepscope.ingest.trace import Trace

NOT_A_NUMBER = "nan"
REQUEST = ("rank", "request")


def compared(trace: Trace) -> pl.LazyFrame:
    """Tokens of which position and both digests are known, with `differs`, the first one first."""
    known = pl.col("position").is_not_null() & pl.col("solo_digest").is_not_null()
    return (
        tokens(trace)
        .filter(known, pl.col("digest").is_not_null())
        .with_columns(differs=pl.col("digest") != pl.col("solo_digest"))
        .sort(*REQUEST, "position", "ts_ns", "digest", "solo_digest", "from_step", "step")
    )


def diverged(trace: Trace) -> pl.LazyFrame:
    """Requests of which a token differs: rank, request, and where it does first.

    Adds the columns of that token, num_compared, num_differ, num_equal (before it) and end_ns, when
    the last of them differed.
    """
    first = ("step", "from_step", "position", "digest", "solo_digest", "ts_ns")
    return (
        compared(trace)
        .group_by(REQUEST, maintain_order=True)
        .agg(
            pl.col(first).filter("differs").first(),
            end_ns=pl.col("ts_ns").filter("differs").max(),
            num_compared=pl.len(),
            num_differ=pl.col("differs").sum(),
            num_equal=pl.col("differs").arg_max(),
        )
        .filter(pl.col("num_differ") > 0)
    )
