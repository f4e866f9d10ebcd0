"""What became of each request: when it came, how old it is among the others, waited and ended.

`lifecycle` without a loop: what a request is in between its events is told by `states`, and does
not depend on the order of the rows of one moment.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.interval_union import merged
from stepscope.analyzers.views.known import any_row, knows
from stepscope.analyzers.views.once import once
from stepscope.ingest.derive import states
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

REQUEST, ENTERS, LEAVES, ENDS = states.REQUEST, states.ENTERS, states.LEAVES, states.ENDS


def events(trace: Trace) -> pl.LazyFrame:
    """`lifecycle` where request and time are known, with times that can be added up."""
    known = pl.col("request").is_not_null() & pl.col("ts_ns").is_not_null()
    return trace.lifecycle.filter(known).with_columns(
        pl.col("ts_ns", "deadline_ns").clip(-FAR_NS, FAR_NS)
    )


def has_arrivals(trace: Trace) -> bool:
    """Tell whether any request arrived: of one that was there before, the age is not known."""
    return any_row(events(trace).filter(pl.col("event") == "arrive"))


def has_histories(trace: Trace) -> bool:
    """Tell whether requests arrived and something became of any: a list of arrivals is no run."""
    return has_arrivals(trace) and any_row(
        events(trace).filter(~pl.col("event").is_in(states.BEFORE))
    )


def has_decisions(trace: Trace) -> bool:
    """Tell whether the scheduler tells of requests why they are left out.

    One of tasks does not, nor does one that tells only whom it lets in. The reference engine tells
    of whoever it looks at, so that where it lets in and leaves out nobody, it looked at nobody.
    """
    of_requests = trace.decisions.filter(pl.col("subject_kind") == "request")
    if trace.manifest.scenario is not None:
        return any_row(of_requests)
    is_let_in = (pl.col("verdict") == "admitted").fill_null(value=False)
    return any_row(of_requests.filter(~is_let_in))


def requests(trace: Trace) -> pl.LazyFrame:
    """One row per request that arrived.

    Columns: rank, request, age (0 is served first), arrive_ns, deadline_ns, finish_ns, outcome
    (finish, reject, abort, error or null) and its cause, ended_ns (trace_end_ns when there is no
    outcome), num_preempted, trace_end_ns (of its rank).

    Age goes by priority, then by arrival; of those that arrive in one moment, by their places in
    the queue, and where these are not told by the number at the end of their ids.
    """
    return once(trace, "requests", lambda: _requests(trace))


def _requests(trace: Trace) -> pl.LazyFrame:
    arrived = pl.col("event") == "arrive"
    came = (
        events(trace)
        .group_by(REQUEST)
        .agg(
            arrive_ns=pl.col("ts_ns").filter(arrived).min(),
            deadline_ns=pl.col("deadline_ns").filter(arrived).max(),
            priority=pl.col("priority").filter(arrived).min().fill_null(0),
            place=pl.col("queue_index").filter(arrived).min().fill_null(-1),
            finish_ns=pl.col("ts_ns").filter(pl.col("event") == "finish").min(),
            num_preempted=(pl.col("event") == "preempt").sum(),
        )
        .filter(pl.col("arrive_ns").is_not_null())
    )
    number = pl.col("request").str.extract(r"(\d{1,18})$").cast(pl.Int64).fill_null(0)
    return (
        came.join(ends(trace), on=REQUEST, how="left")
        .join(last_moment(trace), on="rank", how="left")
        .with_columns(ended_ns=pl.coalesce("ended_ns", "trace_end_ns"))
        .sort("rank", "priority", "arrive_ns", "place", number, "request")
        .with_columns(age=pl.int_range(pl.len()).over("rank"))
        .drop("priority", "place")
    )


def queue_places(trace: Trace) -> pl.LazyFrame:
    """Where requests stood in a queue that was sorted anew: rank, request, sorted_ns, place.

    In order of time. It holds until the queue is sorted again.
    """
    known = trace.queue_order.drop_nulls(["request", "index", "ts_ns"])
    sorted_ns = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    return known.select(*REQUEST, sorted_ns=sorted_ns, place="index").sort("sorted_ns")


def external_ids(trace: Trace) -> pl.LazyFrame:
    """The ids that clients gave their requests: rank, request, external_id, each once."""
    told = trace.lifecycle.select(*REQUEST, "external_id").drop_nulls(["request", "external_id"])
    return told.unique(maintain_order=True)


def waits(trace: Trace) -> pl.LazyFrame:
    """When `requests` waited: rank, request, step (in which the wait began), from_ns, to_ns."""
    return once(trace, "waits", lambda: _waits(trace))


def _waits(trace: Trace) -> pl.LazyFrame:
    ended = requests(trace).select(*REQUEST, "ended_ns")
    return (
        states.request_states(trace.lifecycle)
        .filter(pl.col("state").is_in([states.WAITING, states.PREEMPTED]))
        .join(ended, on=REQUEST, maintain_order="left")
        .with_columns(pl.min_horizontal("to_ns", "ended_ns"))
        .select(*REQUEST, "step", "from_ns", "to_ns")
        .filter(pl.col("from_ns") < pl.col("to_ns"))
    )


def turns(trace: Trace) -> pl.LazyFrame:
    """Whenever a request entered the queue, left it or ended, whether it waits from then on.

    Columns: rank, request, ts_ns, step, is_waiting, in order of request and time; one row for all
    that happened in a moment. Whoever has ended does not wait.
    """
    waits = pl.col("state").is_in([states.WAITING, states.PREEMPTED])
    has_ended = (pl.col("state") == states.ENDED).cast(pl.Int8).cum_max().over(REQUEST) > 0
    return states.request_states(trace.lifecycle).select(
        *REQUEST, "step", ts_ns="from_ns", is_waiting=waits & ~has_ended
    )


def served(trace: Trace) -> pl.LazyFrame:
    """How long each request was in a batch: rank, request, served_ns.

    Without batches, or times of steps, there is no row.

    `again_ns` of it was for nothing but to compute again what a preemption threw away. Where two
    steps that it was in overlap, that time counts once.
    """
    return once(trace, "served", lambda: _served(trace))


def _served(trace: Trace) -> pl.LazyFrame:
    rows = _rows(trace) if knows(trace, "steps.ts_ns", "steps.dur_ns") else _rows(trace).clear()
    again = rows.filter("is_recompute")
    anew = rows.filter(~pl.col("is_recompute").fill_null(value=False))
    # Few rows compute again, and many do not: the few are looked up, and never the many.
    beside = anew.join(again, on=[*REQUEST, "step"], how="semi")
    for_nothing = again.join(beside, on=[*REQUEST, "step"], how="anti")
    in_all = _lasted(_timed(trace, rows), "served_ns")
    again_ns = _lasted(_timed(trace, for_nothing), "again_ns")
    return in_all.join(again_ns, on=REQUEST, how="left").with_columns(
        pl.col("again_ns").fill_null(0)
    )


def _lasted(batches: pl.LazyFrame, name: str) -> pl.LazyFrame:
    none = batches.select(REQUEST).unique().with_columns(pl.lit(0, pl.Int64).alias(name))
    length = pl.col("to_ns") - pl.col("from_ns")
    some = merged(batches, REQUEST).group_by(REQUEST).agg(length.sum().alias(name))
    return pl.concat([none, some]).group_by(REQUEST).agg(pl.col(name).max())


def neglected(trace: Trace, requests: pl.LazyFrame) -> pl.LazyFrame:
    """The longest time that each of `requests` was there and in no batch.

    Columns: rank, request, from_ns, to_ns. A request waits in the queue, and also while it runs and
    is left out of batch after batch.
    """
    rows = _rows(trace).join(requests, on=REQUEST, how="semi")
    batches = _timed(trace, rows)
    were_in_one = requests.join(batches.select(REQUEST).unique(), on=REQUEST, how="semi")
    ends = (
        were_in_one.select(*REQUEST, from_ns=moment, to_ns=moment)
        for moment in ("arrive_ns", "ended_ns")
    )
    length = pl.col("to_ns") - pl.col("from_ns")
    return (
        pl.concat([batches, *ends])
        .sort(*REQUEST, "from_ns", "to_ns")
        .select(
            *REQUEST,
            to_ns="from_ns",
            from_ns=pl.col("to_ns").cum_max().shift(1).over(REQUEST),
        )
        .filter(length > 0)
        .group_by(REQUEST)
        .agg(pl.col("from_ns", "to_ns").sort_by(-length, "from_ns").first())
    )


def _rows(trace: Trace) -> pl.LazyFrame:
    """What requests were in which batches: rank, request, step, is_recompute."""
    known = trace.batch_rows.filter(pl.col("request").is_not_null())
    return known.select(*REQUEST, "step", "is_recompute")


def _timed(trace: Trace, rows: pl.LazyFrame) -> pl.LazyFrame:
    """When the steps of `rows` were, for each row: rank, request, from_ns, to_ns."""
    begins = pl.col("ts_ns").min().clip(-FAR_NS, FAR_NS)
    lasts = pl.col("dur_ns").max().clip(0, FAR_NS).fill_null(0)
    steps = trace.steps.group_by("rank", "step").agg(from_ns=begins, to_ns=begins + lasts)
    return rows.join(steps, on=["rank", "step"]).select(*REQUEST, "from_ns", "to_ns")


def ends(trace: Trace) -> pl.LazyFrame:
    """How and when each request ended first: rank, request, ended_ns, outcome, cause."""
    return (
        events(trace)
        .filter(pl.col("event").is_in(ENDS))
        .group_by(REQUEST)
        .agg(pl.col("ts_ns", "event", "cause").sort_by("ts_ns", "event", "cause").first())
        .rename({"ts_ns": "ended_ns", "event": "outcome"})
    )


def last_moment(trace: Trace) -> pl.LazyFrame:
    """The last time that each rank recorded of its requests or its steps: rank, trace_end_ns."""
    lasted = pl.col("dur_ns").clip(0, FAR_NS).fill_null(0)
    ended = (pl.col("ts_ns").clip(-FAR_NS, FAR_NS) + lasted).clip(-FAR_NS, FAR_NS)
    steps = trace.steps.select("rank", ts_ns=ended)
    return (
        pl.concat([events(trace).select("rank", "ts_ns"), steps])
        .group_by("rank")
        .agg(trace_end_ns=pl.col("ts_ns").max())
    )
