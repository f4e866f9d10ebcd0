"""Steps in which a running slot was free, somebody waited, and nothing known stood in the way."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.batches import STEP, formed, own_times, when_formed
from stepscope.analyzers.views.declared import max_num_seqs
from stepscope.analyzers.views.left_out import (
    BARS,
    holding,
    is_passed_by,
    left_out,
    num_holding,
)
from stepscope.ingest.trace import Trace

_IS_QUEUED = pl.col("resource") == "queue"
_LACKS_TOKENS = (pl.col("told_resource") == "kv-token").fill_null(value=False)
"""Of a pool of tokens more is kept for those who run than they hold: what is left is not told."""
_POOLS = ("kv-block", "kv-token")
_IS_SHORT = pl.col("resource").is_in([*_POOLS, "token-budget"])
_IS_BARRED = is_passed_by() | pl.col("resource").is_in([*BARS, "encoder-budget"]).fill_null(
    value=False
)
_IS_TAKEN = (
    (pl.col("subject_kind") == "request")
    & (pl.col("verdict") == "preempted")
    & pl.col("resource").is_in(_POOLS)
    & (pl.col("needed") <= pl.col("available")).fill_null(value=False).not_()
)


def idle_slots(trace: Trace) -> pl.LazyFrame:
    """`formed` steps with running_slots (declared, or the most that ever ran at once),
    num_free_slots and lost_ns, the time of the slots that a waiting request could have had.

    Adds formed_ns, and what was told of those who waited when the batch was formed: see `_told`;
    and num_taken, of how many requests KV blocks were taken in the step because too few were free.
    """
    declared = max_num_seqs(trace)
    most = pl.col("num_running").max().over("rank") if declared is None else pl.lit(declared)
    lost = pl.min_horizontal("num_free_slots", "num_waiting").cast(pl.Int64)
    steps = (
        own_times(formed(trace), of=("rank",))  # a slot is lost once, whatever stages ran
        .with_columns(running_slots=most.cast(pl.Int64))
        .with_columns(num_free_slots=pl.col("running_slots") - pl.col("num_running"))
        .with_columns(lost_ns=lost * (pl.col("to_ns") - pl.col("from_ns")))
        .drop("from_ns", "to_ns")
        .join(when_formed(trace), on=STEP, how="left")
        .join(_taken(trace), on=STEP, how="left")
    )
    return _told(steps, trace)


def _taken(trace: Trace) -> pl.LazyFrame:
    return trace.decisions.filter(_IS_TAKEN).group_by(STEP).agg(num_taken=pl.len())


def _told(steps: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add how many were told what: num_queued, num_short, num_unready (not ready, or kept out).

    And told_resource, told_needed and told_available of who was told last that blocks or budget are
    short, where that still held.
    """
    told = left_out(trace)
    counts = {"num_queued": _IS_QUEUED, "num_short": _IS_SHORT, "num_told": pl.lit(value=True)}
    for name, which in counts.items():
        steps = num_holding(steps, "formed_ns", told.filter(which), name)
    unready = told.filter(_IS_BARRED)
    steps = num_holding(steps, "formed_ns", unready, "num_unready")
    return holding(steps, "formed_ns", told.filter(_IS_SHORT))


def is_idle(free_share: float) -> pl.Expr:
    """Whether a running slot was idle: somebody could have come in, and nobody did.

    Where the last who was told that KV blocks or token budget are short said how many it needs, it
    could when that many were left; otherwise when `free_share` of them were. A pool or a budget
    that is not told of is not short; what is reserved for decodes is not left. Where the number of
    tokens in the batch is not known, it is not known whether the budget was spent, and the step is
    not counted. Nor is one whose first in the queue is not ready (its grammar is being compiled,
    say), or in which blocks had to be taken from somebody who ran; nor one in which a request was
    told last that a pool of tokens is short, in which the engine keeps room for outputs to come.
    """
    taken = pl.max_horizontal("num_tokens", pl.col("reserved_tokens").fill_null(0))
    tokens_left = pl.when(pl.col("num_tokens").is_not_null()).then(pl.col("token_budget") - taken)
    blocks_left = _is_left("kv-block", pl.col("kv_blocks_free"), "kv_blocks_total", free_share)
    return (
        (pl.col("num_free_slots") > 0)
        & (pl.col("num_waiting") > 0)
        & (pl.col("num_prefill_tokens") == 0)
        & pl.col("num_taken").is_null()
        & blocks_left
        & ~_LACKS_TOKENS
        & _is_left("token-budget", tokens_left, "token_budget", free_share)
        & _somebody_is_ready()
    )


def _is_left(resource: str, left: pl.Expr, whole: str, free_share: float) -> pl.Expr:
    """Whether enough of a resource is left, by what was needed or else by `free_share`."""
    is_told = (pl.col("told_resource") == resource).fill_null(value=False)
    was_lacking = is_told & (pl.col("told_needed") > pl.col("told_available"))
    is_new = is_told & (pl.col("told_ts_ns") == pl.col("formed_ns"))
    is_share = (left >= free_share * pl.col(whole)).fill_null(pl.col(whole).is_null())
    is_unsure = (pl.col("num_short") > 0) & pl.col("told_resource").is_null()
    return (
        pl.when(was_lacking.fill_null(value=False) & left.is_not_null())
        .then(left >= pl.col("told_needed"))
        .otherwise(is_share & ~is_unsure & ~(is_new & pl.col("told_needed").is_null()))
    )


def _somebody_is_ready() -> pl.Expr:
    """Not where all who wait are not ready, or stand behind those who are not."""
    num_others = pl.col("num_told") - pl.col("num_unready") - pl.col("num_queued")
    num_untold = pl.col("num_waiting").cast(pl.Int64) - pl.col("num_told")
    all_behind = (num_untold <= 0) | (pl.col("num_queued") > 0)
    return ~((pl.col("num_unready") > 0) & (num_others <= 0) & all_behind)


def why(streaks: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add what was told last, and still held, when the batch at `last_formed_ns` was formed.

    Columns: told_reason, told_resource and told_needed; that somebody waits behind another is no
    reason.
    """
    told = left_out(trace).filter(_IS_QUEUED.fill_null(value=False).not_())
    return holding(streaks, "last_formed_ns", told)
