"""Steps in which a seat was free, somebody waited, and nothing that is known stood in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.analyzers.batches import formed
from stepscope.analyzers.declared import seats
from stepscope.analyzers.occupancy import FAR_NS

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace


def idle_seats(trace: Trace) -> pl.LazyFrame:
    """`formed` steps with seats (declared, or the most that ever ran at once), num_free_seats and
    lost_ns, which is the time of the seats that a waiting request could have had.
    """
    declared = seats(trace)
    most = pl.col("num_running").max().over("rank") if declared is None else pl.lit(declared)
    lost = pl.min_horizontal("num_free_seats", "num_waiting").cast(pl.Int64)
    lasted = (pl.col("end_ns") - pl.col("ts_ns")).clip(0, FAR_NS)
    return (
        formed(trace)
        .with_columns(seats=most.cast(pl.Int64))
        .with_columns(num_free_seats=pl.col("seats") - pl.col("num_running"))
        .with_columns(lost_ns=lost * lasted)
    )


def is_idle(free_share: float) -> pl.Expr:
    """Whether a seat was idle: `free_share` of blocks and budget were left, and nobody came in.

    A pool or a budget that is not told of is not short; what is reserved for decodes is not left.
    Where the number of tokens in the batch is not known, it is not known whether the budget was
    spent, and the step is not counted.
    """
    blocks_left = pl.col("kv_blocks_free") >= free_share * pl.col("kv_blocks_total")
    taken = pl.max_horizontal("num_tokens", pl.col("reserved_tokens").fill_null(0))
    tokens_left = pl.when(pl.col("num_tokens").is_not_null()).then(pl.col("token_budget") - taken)
    return (
        (pl.col("num_free_seats") > 0)
        & (pl.col("num_waiting") > 0)
        & (pl.col("num_prefill_tokens") == 0)
        & blocks_left.fill_null(pl.col("kv_blocks_total").is_null())
        & (pl.col("token_budget").is_null() | (tokens_left >= free_share * pl.col("token_budget")))
    )


def why(streaks: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add reason: what was told last of a request that was left out, before the streak ended.

    Adds resource and needed too: what it lacked.
    """
    told = ("reason", "resource", "needed", "subject")
    is_left_out = (
        (pl.col("subject_kind") == "request")
        & (pl.col("verdict") == "deferred")
        & pl.col("resource").ne_missing("queue")
    )
    left_out = (
        trace.decisions.filter(is_left_out, pl.col("ts_ns").is_not_null())
        .group_by("rank", pl.col("ts_ns").clip(-FAR_NS, FAR_NS).alias("told_ns"))
        .agg(pl.col(told).sort_by(told).last())
        .select("rank", "told_ns", "reason", "resource", "needed")
        .sort("told_ns")
    )
    return streaks.sort("end_ns").join_asof(
        left_out, left_on="end_ns", right_on="told_ns", by="rank", check_sortedness=False
    )
