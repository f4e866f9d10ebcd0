"""What requests and cores were doing: the one definition for rules, blame, screens and exports.

A request is in the *front end* from when that received it until it arrives in the engine's queue,
and in *delivery* from its end there until the front end has given the client the last of it, where
that is recorded. It *waits* from its arrival until it is let in (admit, resume), and again when it
was put back (defer). It is *preempted* from when it was thrown out until it is let in again,
whatever else is decided about it meanwhile. From when it is let in until it leaves it *runs*: in a
batch from the beginning of a step to its end, in none in between. A request whose first token is
recorded, and no admission, was let in at a time that is not known: it is *unknown* from its arrival
until that token, and runs from there. So is every request that was not rejected where first tokens
or ends of any are recorded and no admission is: it may have been in a batch all along.

A core is *running* from when a block begins on it to that block's end. It is *held* while nothing
runs there and a block has been dispatched to it that has not begun; a block that is behind another
one is *pending*. A core that is neither running nor held is *idle*.
"""

from __future__ import annotations

import polars as pl

from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

REQUEST = ("rank", "request")
FIRST_TOKEN = "first-token"  # noqa: S105 - the name of an event
BEFORE = ("receive", "arrive")
"""What happens to a request before anybody has decided anything about it."""
ENTERS = ("arrive", "preempt", "defer")
LEAVES = ("admit", "resume")
ENDS = ("finish", "reject", "abort", "error")
WAITING, PREEMPTED, RUNNING, ENDED = "waiting", "preempted", "running", "ended"
FRONT_END, DELIVERY, UNKNOWN = "front-end", "delivery", "unknown"


def is_list_of_arrivals(trace: Trace) -> bool:
    """Whether all that is told of requests is when they came: nobody served them, and none waited.

    A workload is such a list: `lifecycle` has arrivals alone, and nothing says that any engine ran.
    """
    if not trace.has("lifecycle") or any(map(trace.has, ("steps", "batch_rows", "decisions"))):
        return False
    are_all = pl.col("event").is_in(BEFORE).all()
    return trace.lifecycle.select(are_all).collect().item() is True


def request_states(lifecycle: pl.LazyFrame) -> pl.LazyFrame:
    """What each request was in from event to event, in order of time.

    Columns: rank, request, step (of the event), from_ns, to_ns (null where nothing followed), state
    (FRONT_END, WAITING, PREEMPTED, RUNNING, DELIVERY, UNKNOWN, ENDED), and `ref` where `lifecycle`
    numbers its rows by one. Several events of one moment count together, whatever their order: who
    is preempted and resumed in one moment is where it was.
    """
    event, state = pl.col("event"), pl.col("state")
    refs = [name for name in ("ref",) if name in lifecycle.collect_schema()]
    change = pl.when(event.is_in(ENTERS)).then(1).when(event.is_in(LEAVES)).then(-1).otherwise(0)
    tokens, unknown = _without_admission(lifecycle)
    moves = lifecycle.filter(event.is_in(["receive", *ENTERS, *LEAVES, *ENDS, "deliver"]))
    moments = (
        pl.concat([moves, tokens])
        .drop_nulls(["request", "ts_ns"])
        .with_columns(from_ns=pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
        .group_by(*REQUEST, "from_ns")
        .agg(
            pl.col("step").min(),
            *(pl.col(name).min() for name in refs),
            change=change.sum(),
            arrives=(event == "arrive").any(),
            is_thrown_out=(event == "preempt").any(),
            ends=event.is_in(ENDS).any(),
            receives=(event == "receive").any(),
            delivers=(event == "deliver").any(),
            has_token=(event == FIRST_TOKEN).any(),
        )
        .join(unknown, on=REQUEST, how="left")
        .with_columns(pl.col("is_admission_unknown").fill_null(value=False))
        .sort(*REQUEST, "from_ns")
        .with_columns(
            has_arrived=pl.col("arrives").cum_max().over(REQUEST),
            has_ended=pl.col("ends").cum_max().over(REQUEST),
            delivers_later=pl.col("delivers")
            .shift(-1, fill_value=False)
            .cum_max(reverse=True)
            .over(REQUEST),
        )
    )
    return (
        moments.with_columns(state=_came_to().forward_fill().over(REQUEST).fill_null(RUNNING))
        .with_columns(turn=(state != WAITING).cum_sum().over(REQUEST))
        .with_columns(
            was_thrown_out=pl.col("is_thrown_out").cast(pl.Int8).cum_max().over(*REQUEST, "turn"),
            to_ns=pl.col("from_ns").shift(-1).over(REQUEST),
        )
        .with_columns(
            state=pl.when(state == WAITING, pl.col("was_thrown_out") > 0)
            .then(pl.lit(PREEMPTED))
            .when(state == WAITING, "is_admission_unknown")
            .then(pl.lit(UNKNOWN))
            .otherwise("state")
        )
        .select(*REQUEST, "step", "from_ns", "to_ns", "state", *refs)
    )


def unknown_admissions(lifecycle: pl.LazyFrame) -> pl.LazyFrame:
    """Return the requests of which nobody knows when they were let in: rank, request."""
    return _without_admission(lifecycle)[1].select(REQUEST)


def _without_admission(lifecycle: pl.LazyFrame) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """First tokens of requests whose admission is not recorded, and which requests these are.

    The second has rank, request and is_admission_unknown, which is true. Where no admissions of a
    rank are recorded and requests got on all the same, they are not known of any: a request that is
    still there may have been let in too.
    """
    event = pl.col("event")
    admissions = lifecycle.filter(event.is_in(LEAVES))
    tokens = lifecycle.filter(event == FIRST_TOKEN).join(admissions, on=REQUEST, how="anti")
    got_on = lifecycle.filter(event.is_in([FIRST_TOKEN, "finish"])).select("rank").unique()
    silent = got_on.join(admissions.select("rank").unique(), on="rank", how="anti")
    of_silent = lifecycle.join(silent, on="rank", how="semi").join(
        lifecycle.filter(event.is_in(["reject", "preempt"])), on=REQUEST, how="anti"
    )
    requests = pl.concat([tokens.select(REQUEST), of_silent.select(REQUEST)]).unique()
    return tokens, requests.with_columns(is_admission_unknown=pl.lit(value=True))


def _came_to() -> pl.Expr:
    """Where a moment's events leave a request; null where it is as it was."""
    is_let_in = (pl.col("change") < 0) | ((pl.col("change") == 0) & pl.col("arrives"))
    is_out = pl.col("ends") | (pl.col("delivers") & pl.col("has_ended"))
    return (
        pl.when(is_out)
        .then(pl.when("delivers_later").then(pl.lit(DELIVERY)).otherwise(pl.lit(ENDED)))
        .when("is_admission_unknown", "has_token")
        .then(pl.lit(RUNNING))
        .when(pl.col("change") > 0)
        .then(pl.lit(WAITING))
        .when(is_let_in)
        .then(pl.lit(RUNNING))
        .when(pl.col("receives") & ~pl.col("has_arrived"))
        .then(pl.lit(FRONT_END))
    )


def step_times(trace: Trace) -> pl.LazyFrame:
    """When each step was formed, began and ended: rank, step, formed_ns, from_ns, to_ns.

    Also its kind, num_prefill_tokens and num_decode_tokens. A step that does not say how long it
    took lasts until the next of its rank and stage of a pipeline; `to_ns` is null where there is
    none.
    """
    key = ["rank", "step"]
    when = pl.col("ts_ns").min().clip(-FAR_NS, FAR_NS)
    lasts = pl.col("dur_ns").max().clip(0, FAR_NS)
    known = pl.col("step").is_not_null() & pl.col("ts_ns").is_not_null()
    sizes = pl.col("kind", "num_prefill_tokens", "num_decode_tokens", "pp_stage").first()
    formed = pl.col("formed_ns").min().clip(-FAR_NS, FAR_NS)
    begun = trace.steps.filter(known).group_by(key).agg(sizes, formed, begun_ns=when, dur_ns=lasts)
    rows = trace.batch_rows.filter(known).group_by(key).agg(rows_ns=when)
    following = pl.col("from_ns").shift(-1).over("rank", "pp_stage")
    return (
        begun.join(rows, on=key, how="full", coalesce=True)
        .with_columns(
            from_ns=pl.coalesce("begun_ns", "rows_ns"),
            formed_ns=pl.coalesce("formed_ns", "rows_ns", "begun_ns"),
        )
        .sort("rank", "from_ns", "step")
        .with_columns(to_ns=pl.coalesce(pl.col("from_ns") + pl.col("dur_ns"), following))
        .drop("begun_ns", "dur_ns", "rows_ns", "pp_stage")
    )


def with_held(core_spans: pl.LazyFrame) -> pl.LazyFrame:
    """Add to each block when it was given its core, and since when the core was held before it.

    `given_ns` is its dispatch (its start where that is not known). The core is held from `held_ns`
    to `ts_ns`: whatever ran there before had ended, and this block, or one that begins after it,
    had been dispatched. Until `held_ns` the block is pending. Rows without a core or a time are
    left out.
    """

    def each(expr: pl.Expr) -> pl.Expr:
        return expr.over("rank", "core")

    ended = pl.col("end_ns").fill_null(FAR_NS).clip(-FAR_NS, FAR_NS)
    free_ns = each(ended.cum_max().shift(1).fill_null(-FAR_NS))
    wanted_ns = each(pl.col("given_ns").cum_min(reverse=True))
    return (
        core_spans.drop_nulls(["rank", "core", "ts_ns"])
        .sort(["rank", "core", "ts_ns"], maintain_order=True)
        .with_columns(given_ns=pl.min_horizontal(pl.coalesce("dispatch_ns", "ts_ns"), "ts_ns"))
        .with_columns(held_ns=pl.min_horizontal(pl.max_horizontal(wanted_ns, free_ns), "ts_ns"))
    )
