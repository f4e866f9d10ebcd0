"""Events that a request must have had, and counts that other rows disprove: of rows-contradict."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.rules.trc.contradictions import BY_ONE, BY_SOME, COLUMNS, STEPS_AFTER
from stepscope.analyzers.views.batches import placed_batches
from stepscope.analyzers.views.requests import ENDS, LEAVES, REQUEST, ends, events, last_moment
from stepscope.ingest.derive.states import BEFORE
from stepscope.ingest.trace import Trace

NO_REQUEST = pl.lit(None, pl.String)


def never_arrived(trace: Trace) -> pl.LazyFrame:
    """Requests without an arrival, in a recording that began before any request ran.

    A request that was there before the recording began has none either, but then it waited in an
    engine that ran nothing: it is older than all others, and let in no later than they are.
    """
    is_let_in = pl.col("event").is_in(LEAVES)
    by_request = (
        events(trace)
        .group_by(REQUEST)
        .agg(
            pl.col("step", "ts_ns", "event").sort_by("ts_ns").first(),
            has_arrived=pl.col("event").is_in(BEFORE).any(),
            let_in_ns=pl.col("ts_ns").filter(is_let_in).min(),
        )
        .with_columns(
            first_ns=pl.col("let_in_ns").min().over("rank"),
            num_missing=(~pl.col("has_arrived")).sum().over("rank"),
            num_arrived=pl.col("has_arrived").sum().over("rank"),
        )
    )
    return (
        by_request.join(_began_idle(trace), on="rank", how="semi")
        .filter(
            ~pl.col("has_arrived"),
            pl.col("ts_ns") > pl.col("first_ns"),
            pl.col("num_missing") * BY_ONE <= pl.col("num_arrived"),
        )
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format("{} has an event ({}) and never arrived", "request", "event"),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _began_idle(trace: Trace) -> pl.LazyFrame:
    """Ranks in whose first batch all that run are, and were let in within the recording."""
    let_in = events(trace).filter(pl.col("event").is_in(LEAVES)).select(REQUEST).unique()
    first = (
        trace.steps.drop_nulls(["step", "ts_ns", "num_running"])
        .sort("ts_ns", "step")
        .group_by("rank")
        .agg(pl.col("step", "num_running").first())
    )
    let_in = let_in.with_columns(is_let_in=pl.lit(value=True))
    return (
        trace.batch_rows.filter(pl.col("request").is_not_null())
        .join(first, on=["rank", "step"])
        .join(let_in, on=REQUEST, how="left")
        .group_by("rank")
        .agg(
            pl.col("num_running").first(),
            num_rows=pl.col("request").n_unique(),
            are_let_in=pl.col("is_let_in").fill_null(value=False).all(),
        )
        .filter("are_let_in", pl.col("num_running") <= pl.col("num_rows"))
        .select("rank")
    )


def never_resumed(trace: Trace) -> pl.LazyFrame:
    """Requests in batches after a preemption and before they were let in again, unlike others."""
    known = events(trace).filter(pl.col("request").is_not_null())
    at = pl.col("ts_ns")
    is_out = pl.col("event").is_in([*ENDS, "preempt"])
    back = known.filter(pl.col("event").is_in(LEAVES)).select(*REQUEST, "ts_ns", back_ns="ts_ns")
    outs = known.filter(is_out).select(*REQUEST, ts_ns=at - 1, out_ns="ts_ns")
    stays = known.filter(pl.col("event") == "preempt").select(*REQUEST, "ts_ns").unique()
    for others in (back, outs):
        stays = stays.sort("ts_ns").join_asof(
            others.sort("ts_ns"), on="ts_ns", by=list(REQUEST), strategy="forward",
            check_sortedness=False,
        )  # fmt: skip
    batches = placed_batches(trace).filter(pl.col("num_tokens") > 0)
    batches = batches.select(*REQUEST, "step", "place", "formed_ns")
    formed = placed_batches(trace).select("rank", "place", "formed_ns").unique().sort("formed_ns")
    before = formed.select("rank", ts_ns="formed_ns", last_place="place")
    is_back = pl.col("back_ns").is_not_null() & (
        pl.col("out_ns").is_null() | (pl.col("back_ns") <= pl.col("out_ns"))
    )
    ran = (
        stays.sort("ts_ns")
        .join_asof(before, on="ts_ns", by="rank", check_sortedness=False)
        .with_columns(is_back=is_back)
        .join(batches, on=REQUEST)
        .filter(
            pl.col("formed_ns") > at,
            pl.col("out_ns").is_null() | (pl.col("formed_ns") < pl.col("out_ns")),
            pl.col("place") >= pl.col("last_place").fill_null(-1) + STEPS_AFTER,
        )
        .sort("formed_ns")
        .group_by(*REQUEST, "ts_ns")
        .agg(pl.col("step", "formed_ns", "is_back").first())
    )
    num_back = pl.col("is_back").sum().over("rank")
    return (
        ran.filter(
            ((~pl.col("is_back")).sum().over("rank") * BY_SOME <= num_back) & ~pl.col("is_back")
        )
        .select(
            *REQUEST, "step", ts_ns="formed_ns",
            says=pl.format(
                "{} is in the batch of step {}, and was not resumed after a preemption",
                "request", "step",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def other_requests(trace: Trace) -> pl.LazyFrame:
    """Steps whose batch has another number of requests, though as many tokens, unlike others."""
    in_rows = trace.batch_rows.group_by("rank", "step").agg(
        in_rows=pl.col("request").n_unique(), tokens=pl.col("num_tokens").sum()
    )
    said = pl.col("num_prefill_reqs") + pl.col("num_decode_reqs")
    tokens = pl.col("num_prefill_tokens") + pl.col("num_decode_tokens")
    differs = pl.col("in_rows") != pl.col("said")
    return (
        trace.steps.filter(pl.col("kind") != "dummy", said.is_not_null())
        .with_columns(said=said, said_tokens=tokens)
        .join(in_rows, on=["rank", "step"])
        .filter(
            (differs.sum() * BY_ONE <= (~differs).sum()).over("rank") & differs,
            (pl.col("tokens") == pl.col("said_tokens")) | pl.col("said_tokens").is_null(),
        )
        .select(
            "rank", "step", "ts_ns", request=NO_REQUEST,
            says=pl.format(
                "step {} says that it ran {} requests, but its batch has {}", "step", "said",
                "in_rows",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def other_total(trace: Trace) -> pl.LazyFrame:
    """Steps in which the pool has another size than in nearly all steps of the rank."""
    total = pl.col("kv_blocks_total")
    usual = (
        trace.steps.drop_nulls("kv_blocks_total")
        .group_by("rank", "kv_blocks_total")
        .agg(num=pl.len())
        .sort("num", "kv_blocks_total", descending=True)
        .group_by("rank", maintain_order=True)
        .agg(usual=total.first(), num_usual=pl.col("num").first(), num_all=pl.col("num").sum())
        .filter((pl.col("num_all") - pl.col("num_usual")) * BY_ONE <= pl.col("num_usual"))
    )
    return (
        trace.steps.drop_nulls("kv_blocks_total")
        .join(usual, on="rank")
        .filter(total != pl.col("usual"))
        .sort("ts_ns")
        .group_by("rank")
        .agg(pl.col("step", "ts_ns", "kv_blocks_total", "usual").first(), num=pl.len())
        .select(
            "rank", "step", "ts_ns", request=NO_REQUEST,
            says=pl.format(
                "step {} says that there are {} KV blocks, and all others {} (in {} of the steps)",
                "step", "kv_blocks_total", "usual", "num",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def more_owned_than_there_are(trace: Trace) -> pl.LazyFrame:
    """Moments at which more KV blocks are owned than the pool has by any step of the rank."""
    block = ["rank", "id"]
    change = pl.col("op").replace_strict(
        {"claim": 1, "share": 1, "release": -1}, default=0, return_dtype=pl.Int64
    )
    total = trace.steps.group_by("rank").agg(pl.col("kv_blocks_total").max())
    times_owned = pl.col("change").cum_sum().over(block)
    is_new = (pl.col("change") > 0) & (pl.col("times_owned") == 1)
    is_last = (pl.col("change") < 0) & (pl.col("times_owned") == 0)
    return (
        trace.allocations.filter(
            pl.col("resource") == "kv-block", pl.col("id").is_not_null(),
            pl.col("ts_ns").is_not_null(),
        )
        .with_columns(change=change)
        .filter(pl.col("change") != 0)
        .sort("ts_ns", maintain_order=True)
        .with_columns(times_owned=times_owned)
        .with_columns(
            num_owned=(is_new.cast(pl.Int64) - is_last.cast(pl.Int64)).cum_sum().over("rank")
        )
        # Of one moment only what all its rows come to is sure.
        .group_by("rank", "ts_ns", maintain_order=True)
        .agg(pl.col("step", "num_owned").last())
        .join(total, on="rank")
        .filter(pl.col("num_owned") > pl.col("kv_blocks_total"))
        .sort("ts_ns")
        .group_by("rank")
        .agg(pl.col("step", "ts_ns", "num_owned", "kv_blocks_total").first())
        .select(
            "rank", "step", "ts_ns", request=NO_REQUEST,
            says=pl.format(
                "requests own {} KV blocks at once, and there are {}", "num_owned",
                "kv_blocks_total",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def never_released(trace: Trace) -> pl.LazyFrame:
    """Requests that end at the last moment with blocks, where all others released theirs by then.

    KVB002 has those that ended before.
    """
    change = pl.col("op").replace_strict(
        {"claim": 1, "share": 1, "release": -1}, default=0, return_dtype=pl.Int64
    )
    changes = trace.allocations.filter(pl.col("id").is_not_null(), pl.col("ts_ns").is_not_null())
    moved = changes.filter(pl.col("op") == "move").select("rank", request="owner")
    is_held = (pl.col("num_owned") > 0) | (pl.col("last_ns") > pl.col("ended_ns"))
    is_last = pl.col("ended_ns") == pl.col("trace_end_ns")
    return (
        changes.select("rank", "resource", "ts_ns", request="owner", change=change)
        .join(moved, on=REQUEST, how="anti")
        .group_by(*REQUEST, "resource")
        .agg(
            num_owned=pl.col("change").sum(),
            last_ns=pl.col("ts_ns").filter(pl.col("change") < 0).max(),
        )
        .join(ends(trace), on=REQUEST)
        .join(last_moment(trace), on="rank")
        .filter(
            (is_held.sum() * BY_ONE <= (~is_held).sum()).over("rank"),
            pl.col("num_owned") > 0,
            is_last,
        )
        .select(
            *REQUEST, step=pl.lit(None, pl.Int64), ts_ns="ended_ns",
            says=pl.format(
                "{} ended ({}) and did not release {} of what it owned ({}), as others did by "
                "their end",
                "request", "outcome", "num_owned", "resource",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def too_many_free(trace: Trace) -> pl.LazyFrame:
    """Steps with more free KV blocks than there are."""
    return (
        trace.steps.filter(pl.col("kv_blocks_free") > pl.col("kv_blocks_total"))
        .group_by("rank")
        .agg(
            pl.col("step", "ts_ns", "kv_blocks_free", "kv_blocks_total").sort_by("ts_ns").first(),
            num=pl.len(),
        )
        .select(
            "rank", "step", "ts_ns", request=NO_REQUEST,
            says=pl.format(
                "{} KV blocks are free of {} in step {} ({} steps in all)",
                "kv_blocks_free", "kv_blocks_total", "step", "num",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip
