"""The line of each request: from when to when it lasts, its first token, and its batches.

These are what `intervals.py` cuts. Times are nanoseconds of the trace's clock.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analyzers.latency.intervals import CODE, NUMBER_OF
from stepscope.analyzers.views.declared import is_client_side
from stepscope.analyzers.views.requests import REQUEST, ends, events, last_moment
from stepscope.ingest.derive import states
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace


def steps(trace: Trace) -> pl.LazyFrame:
    """`step_times`; a last step that does not say how long it took lasts for ever."""
    return states.step_times(trace).with_columns(pl.col("to_ns").fill_null(FAR_NS))


def scheduled(trace: Trace, steps: pl.LazyFrame) -> pl.LazyFrame:
    """When each request was in a batch, and for what.

    Columns: rank, request, step, formed_ns (when the batch was formed), from_ns, to_ns, work.
    """
    work = (
        pl.when(pl.col("is_recompute").fill_null(value=False))
        .then(NUMBER_OF["recompute"])
        .when(pl.col("phase") == "prefill")
        .then(NUMBER_OF["prefill"])
        .when(pl.col("phase") == "decode")
        .then(NUMBER_OF["decode"])
        .otherwise(NUMBER_OF["unknown"])
    )
    rows = trace.batch_rows.filter(pl.col("request").is_not_null())
    times = steps.select("rank", "step", "formed_ns", "from_ns", "to_ns")
    return rows.select(*REQUEST, "step", work=work.cast(CODE)).join(times, on=["rank", "step"])


def phases_of_lifecycle(trace: Trace) -> pl.LazyFrame:
    """Prefill and decode of requests in no recorded batch, with the columns of `scheduled`.

    A request that runs is in prefill until its first token and in decode from there on. This is
    inferred for ranks without decisions, if batch rows are inferred or absent. The batch rows of a
    recording are complete: there, a running request without one is in no batch.
    """
    has_rows = trace.manifest.tables.get("batch_rows") not in {None, "inferred"}
    decided = trace.decisions.select("rank").unique()
    lifecycle = trace.lifecycle.join(decided, on="rank", how="anti").filter(not has_rows)
    event = pl.col("event")
    tokens = lifecycle.group_by(REQUEST).agg(
        first_ns=pl.col("ts_ns").filter(event == "first-token").min(),
        is_finished=(event == "finish").any(),
        ended_ns=pl.col("ts_ns").filter(event.is_in(states.ENDS)).min(),
        has_end=event.is_in(states.ENDS).any(),
    )
    rank_has_first = pl.col("first_ns").is_not_null().any().over("rank")
    # Of a request that finished without a first token, nothing says when its prefill ended.
    is_known = pl.col("first_ns").is_not_null() | (rank_has_first & ~pl.col("is_finished"))
    running = (
        states.request_states(lifecycle)
        .filter(pl.col("state") == states.RUNNING)
        .with_columns(pl.col("to_ns").fill_null(FAR_NS))
        .join(tokens.filter(is_known), on=REQUEST)
        .join(_prompts_done(trace, lifecycle), on=REQUEST, how="left")
        .join(_in_no_batch(trace, tokens), on=REQUEST, how="left")
        .with_columns(
            pl.col("is_in_none").fill_null(value=False),
            pl.col("first_ns").fill_null(FAR_NS),
            prompted_ns=pl.when(pl.col("first_ns").is_null())
            .then(pl.coalesce("done_ns", pl.when("is_in_none").then("from_ns")))
            .fill_null(FAR_NS),
        )
    )
    parts = []
    for phase, from_ns, to_ns in (
        ("prefill", pl.col("from_ns"), pl.min_horizontal("to_ns", "first_ns", "prompted_ns")),
        ("unknown", pl.max_horizontal("from_ns", "prompted_ns"), pl.col("to_ns")),
        ("decode", pl.max_horizontal("from_ns", "first_ns"), pl.col("to_ns")),
    ):
        # Of a request that ended at a time that is not known, nor is it known until when it ran.
        is_timed = pl.col("ended_ns").is_not_null() | ~pl.col("has_end")
        ran = running if phase == "prefill" else running.filter(is_timed)
        part = ran.select(
            *REQUEST, step=pl.lit(None, pl.Int64), from_ns=from_ns, to_ns=to_ns,
            work=pl.lit(NUMBER_OF[phase], CODE),
        )  # fmt: skip
        parts.append(part)
    inferred = pl.concat(parts).filter(pl.col("from_ns") < pl.col("to_ns"))
    return inferred.with_columns(formed_ns="from_ns")


def _in_no_batch(trace: Trace, tokens: pl.LazyFrame) -> pl.LazyFrame:
    """Requests in no batch, where all that had a first token are in one: they had no prefill."""
    in_one = trace.batch_rows.filter(pl.col("request").is_not_null()).select(REQUEST).unique()
    has_row = pl.col("has_row").fill_null(value=False)
    has_first = pl.col("first_ns").is_not_null()
    are_all = (has_row | ~has_first).all() & (has_row & has_first).any()
    return (
        tokens.join(in_one.with_columns(has_row=pl.lit(value=True)), on=REQUEST, how="left")
        .with_columns(are_all=are_all.over("rank"))
        .filter("are_all", ~has_row)
        .select(*REQUEST, is_in_none=pl.lit(value=True))
    )


def _prompts_done(trace: Trace, lifecycle: pl.LazyFrame) -> pl.LazyFrame:
    """When the last of a prompt was computed, as far as batches say: rank, request, done_ns."""
    last = trace.batch_rows.filter("is_final_chunk").select(*REQUEST, "step", "ts_ns")
    steps = states.step_times(trace).select("rank", "step", "to_ns")
    return (
        last.join(steps, on=["rank", "step"], how="left")
        .join(lifecycle.select(REQUEST).unique(), on=REQUEST, how="semi")
        .group_by(REQUEST)
        .agg(done_ns=pl.coalesce("to_ns", "ts_ns").max())
    )


def lines(trace: Trace, scheduled: pl.LazyFrame) -> pl.LazyFrame:
    """One row per request, in order of arrival: where its line begins and ends.

    Columns: line (its number), rank, request, from_ns, to_ns, sampled_ns, first_token_ns,
    engine_first_token_ns, outcome, and whether its arrival was recorded. Where a front end tells of
    it, the line begins when that received it and ends when the client had all of it; first_token_ns
    is then when the client had the first token, sampled_ns when the last of those was sampled that
    came with it, and
    engine_first_token_ns when the engine sampled the first, null where only clients were recorded.
    A request that ranks share is told by those that have its lifecycle, or else by the lowest.
    """
    is_told = pl.col("told_ns").is_not_null()
    # An end of unknown time is an end: the request is counted as long as anything tells of it.
    has_ended = pl.col("ended_ns").is_not_null() | pl.col("has_untimed_end")
    still_there = pl.when(is_told & ~pl.col("has_untimed_end")).then("trace_end_ns")
    arrived = pl.min_horizontal("came_ns", "received_ns")
    out_ns = pl.when(has_ended).then("last_out_ns")
    untimed_ends = untimed(trace, states.ENDS).with_columns(has_untimed_end=True)
    return (
        _told_or_seen(trace, scheduled)
        .join(ends(trace), on=REQUEST, how="left")
        .join(untimed_ends, on=REQUEST, how="left")
        .with_columns(pl.col("has_untimed_end").fill_null(value=False))
        .join(last_moment(trace), on="rank", how="left")
        .with_columns(from_ns=pl.coalesce(arrived, pl.min_horizontal("told_ns", "seen_ns")))
        .with_columns(to_ns=pl.coalesce("ended_ns", still_there, "left_ns", "from_ns"))
        .with_columns(pl.max_horizontal("from_ns", "to_ns", out_ns).alias("to_ns"))
        .pipe(_with_all_sampled, trace)
        .select(
            *REQUEST, "from_ns", "to_ns", "sampled_ns", "engine_first_token_ns", "outcome",
            first_token_ns=pl.coalesce("first_out_ns", "sampled_ns"),
            has_arrival=arrived.is_not_null(),
        )
        .sort("from_ns", "rank", "request")
        .with_row_index("line")
    )  # fmt: skip


def untimed(trace: Trace, happened: Sequence[str]) -> pl.LazyFrame:
    """The requests of which it is recorded that such an event happened, and not when."""
    is_one = pl.col("request").is_not_null() & pl.col("event").is_in(happened)
    return trace.lifecycle.filter(is_one, pl.col("ts_ns").is_null()).select(REQUEST).unique()


def _told_or_seen(trace: Trace, scheduled: pl.LazyFrame) -> pl.LazyFrame:
    """When each request came, was sampled and given to the client, and when it was in batches."""
    at, brings = pl.col("ts_ns"), brings_tokens()
    is_of_engine = pl.lit(not is_client_side(trace)) & (pl.col("event") == "first-token")
    told = events(trace).group_by(REQUEST).agg(
        came_ns=at.filter(pl.col("event") == "arrive").min(),
        told_ns=at.min(),
        received_ns=at.filter(pl.col("event") == "receive").min(),
        sampled_ns=at.filter(pl.col("event") == "first-token").min(),
        engine_first_token_ns=at.filter(is_of_engine).min(),
        first_out_ns=at.filter(brings).min(),
        num_first=pl.col("num_generated").filter(brings).sort_by(at.filter(brings)).first(),
        last_out_ns=at.filter(pl.col("event") == "deliver").max(),
    )  # fmt: skip
    left = pl.col("to_ns").filter(pl.col("to_ns") < FAR_NS).max()
    seen = scheduled.group_by(REQUEST).agg(seen_ns=pl.col("from_ns").min(), left_ns=left)
    is_told = pl.col("told_ns").is_not_null()
    is_lowest = pl.col("rank") == pl.col("rank").min().over("request")
    both = told.join(seen, on=REQUEST, how="full", coalesce=True)
    return both.filter(is_told | (~is_told.any().over("request") & is_lowest))


def _with_all_sampled(lines: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Set sampled_ns to when the last of `num_first` tokens was, which the client got at once.

    Where tokens have no times that was at the request's end, or when the client got them. Where it
    is not known how many it got at once, they were those sampled by then.
    """
    num_first, is_out = pl.col("num_first"), pl.col("first_out_ns").is_not_null()
    several = lines.filter(is_out, num_first.is_null() | (num_first > 1))
    is_last = pl.col("position") == num_first - 1
    is_by_then = pl.col("ts_ns") <= pl.col("first_out_ns")
    last = (
        trace.outputs.join(several.select(*REQUEST, "num_first", "first_out_ns"), on=REQUEST)
        .filter(pl.when(num_first.is_null()).then(is_by_then).otherwise(is_last))
        .group_by(REQUEST)
        .agg(first_last_ns=pl.col("ts_ns").min(), last_by_then_ns=pl.col("ts_ns").max())
    )
    told = pl.coalesce("first_last_ns", "ended_ns", "first_out_ns")
    sampled = (
        pl.when(num_first > 1)
        .then(pl.min_horizontal(told, "first_out_ns"))
        .when(num_first.is_null())
        .then(pl.coalesce("last_by_then_ns", "sampled_ns"))
        .otherwise("sampled_ns")
    )
    return lines.join(last, on=REQUEST, how="left").with_columns(sampled_ns=sampled)


def brings_tokens() -> pl.Expr:
    """Whether an event is a delivery of tokens to the client, as far as the front end says."""
    has_some = (pl.col("num_generated") > 0).fill_null(value=True)
    return (pl.col("event") == "deliver") & has_some
