"""Recomputed tokens of requests, and whether a preemption caused them."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.batches import STEP, rows, when_formed
from stepscope.analyzers.views.requests import REQUEST, events
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

LEAST_RESET = 32
"""A request that goes back by at least this many tokens was reset: two blocks of 16."""


def recomputed(trace: Trace) -> pl.LazyFrame:
    """Batch rows with again: tokens up to a position that the request had reached before.

        Adds back, the tokens from where the row begins to the end of the request's previous row,
    and is_preempted: whether a preemption caused the last step back; null before the first one. A
    request that goes back by LEAST_RESET or more without a preemption since its previous row was
    reset. For a row without a position, `is_recompute` counts, and back is null.
    """
    end = pl.col("num_computed") + pl.col("num_tokens")
    # The tokens after a rejected draft are new, not recomputed: if the number of accepted ones is
    # not recorded, only the rest of a row is certain.
    certain = end - pl.col("num_draft").fill_null(0) + pl.col("num_accepted").fill_null(0)
    reached = certain.cum_max().shift(1).over(REQUEST).fill_null(0)
    again = (pl.min_horizontal(end, reached) - pl.col("num_computed")).clip(lower_bound=0)
    is_marked = pl.col("is_recompute").fill_null(value=False)
    marked = pl.when(is_marked).then("num_tokens").otherwise(0)
    preempted = (
        events(trace)
        .filter(pl.col("event") == "preempt")
        .select(*REQUEST, preempted_ns="ts_ns")
        .sort("preempted_ns")
    )
    since_before = pl.col("preempted_ns") >= pl.col("_before_ns").fill_null(-FAR_NS)
    is_preempted = (
        pl.when(since_before | (pl.col("num_computed").is_null() & is_marked))
        .then(pl.lit(value=True))
        .when(pl.col("back") >= LEAST_RESET)
        .then(pl.lit(value=False))
    )
    return (
        rows(trace)
        .filter(pl.col("ts_ns").is_not_null(), pl.col("num_tokens").is_not_null())
        .join(when_formed(trace), on=STEP, how="left")
        .sort("ts_ns")
        .join_asof(
            preempted, left_on="ts_ns", right_on="preempted_ns", by=list(REQUEST),
            check_sortedness=False,
        )
        .sort(*REQUEST, "ts_ns", "step", "num_computed", "num_tokens", "is_recompute")
        .with_columns(
            again=pl.coalesce(again, marked),
            back=certain.shift(1).over(REQUEST) - pl.col("num_computed"),
            # A batch may be formed while the one before it runs; its rows have that time, or later.
            _before_ns=pl.min_horizontal("ts_ns", "formed_ns").shift(1).over(REQUEST),
        )
        .with_columns(is_preempted=is_preempted.forward_fill().over(REQUEST))
        .drop("_before_ns", "formed_ns", "preempted_ns")
    )  # fmt: skip
