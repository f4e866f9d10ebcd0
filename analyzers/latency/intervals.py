"""Each request's time from its arrival to its end, cut wherever something about it changes.

Whatever happened to a request is a point of its own line: it arrived, was admitted, was preempted,
something was decided about it, a batch that it was in began or ended. Sorted, and with what holds
carried forward, two points next to each other are an interval in which one thing holds. The first
point is the arrival and the last the end, so the intervals of a request add up to its latency to
the nanosecond, whatever else the trace says or leaves out.

A trace that names no request has one line for each rank: that of its steps.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.causes import CAUSES, OF_RESOURCE, PARKED
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.requests import REQUEST, events, queue_places
from stepscope.ingest.derive import states
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

NUMBER_OF = {cause.name: number for number, cause in enumerate(CAUSES, start=1)}
NOTHING, WAITING, PREEMPTED, RUNNING, FRONT_END, DELIVERY = range(6)
STATE_OF = {
    states.WAITING: WAITING, states.PREEMPTED: PREEMPTED, states.RUNNING: RUNNING,
    states.FRONT_END: FRONT_END, states.DELIVERY: DELIVERY,
}  # fmt: skip
# Of the points of one moment: what ends goes before what begins, and the end of all is last.
BIRTH, LEFT_BATCH, MOVED, CAME, LOOKED_AT, READY, DECIDED, JOINED, FIRST_TOKEN, END = range(10)
FORMED = NUMBER_OF["formed"]
IN_FAVOUR = ("admitted", "chosen")
CODE = pl.UInt8
NO_HEAD = 2**32 - 1


def intervals(
    trace: Trace, lines: pl.LazyFrame, steps: pl.LazyFrame, scheduled: pl.LazyFrame
) -> pl.LazyFrame:
    """The intervals of `lines`: line, rank, from_ns, to_ns, state, work, reason, head, and flags.

    `work` and `reason` are numbers of causes, 0 for none; `head` is the line of the head that it
    stood behind, where it is told. `is_before_first` is true until the first token, `is_under_way`
    while that was sampled and had not reached the client, and `is_first` while it stood first in a
    queue that had been sorted anew.
    """
    points = [
        *(_births(lines), _deaths(lines), _first_tokens(lines), _moves(trace), _sorted(trace)),
        *(_arrivals(trace, steps), _decisions(trace, lines), *_joined_and_left(scheduled)),
    ]
    every = (
        "state", "work", "reason", "head", "is_before_first", "is_under_way", "is_first",
    )  # fmt: skip
    # A reason without a head ends the one before, head and all.
    head = pl.when(pl.col("reason").is_not_null()).then(pl.col("head").fill_null(NO_HEAD))
    on_lines = [_on(points_of, lines) for points_of in points]
    bounds = lines.select("line", "rank", first_ns="from_ns", last_ns="to_ns")
    return (
        pl.concat(on_lines, how="diagonal")
        .with_columns(head=head)
        .join(bounds, on="line", maintain_order="left")
        .with_columns(from_ns=pl.col("ts_ns").clip(pl.col("first_ns"), pl.col("last_ns")))
        .sort("line", "from_ns", "order", maintain_order=True)
        .with_columns(pl.col(every).forward_fill(), to_ns=pl.col("from_ns").shift(-1))
        .filter(pl.col("order") != END, pl.col("from_ns") < pl.col("to_ns"))
        .select("line", "rank", "from_ns", "to_ns", *every)
        .with_columns(pl.col("head").replace(NO_HEAD, None))
    )


def _births(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Before anything has happened to it, a request is nowhere."""
    nothing = [pl.lit(NOTHING, CODE).alias(column) for column in ("state", "work", "reason")]
    return lines.select(
        *REQUEST, *nothing, ts_ns="from_ns", order=_order(BIRTH), is_before_first=pl.lit(True),
        is_under_way=pl.lit(False), is_first=pl.lit(False),
    )  # fmt: skip


def _deaths(lines: pl.LazyFrame) -> pl.LazyFrame:
    return lines.select(*REQUEST, ts_ns="to_ns", order=_order(END))


def _first_tokens(lines: pl.LazyFrame) -> pl.LazyFrame:
    known = lines.filter(pl.col("first_token_ns").is_not_null())
    came = known.select(
        *REQUEST, ts_ns="first_token_ns", order=_order(FIRST_TOKEN),
        is_before_first=pl.lit(False), is_under_way=pl.lit(False),
    )  # fmt: skip
    is_late = pl.col("sampled_ns") < pl.col("first_token_ns")
    sampled = known.filter(is_late).select(
        *REQUEST, ts_ns="sampled_ns", order=_order(FIRST_TOKEN), is_under_way=pl.lit(True)
    )
    return pl.concat([sampled, came], how="diagonal")


def _moves(trace: Trace) -> pl.LazyFrame:
    """Into the queue and out of it; what was decided about a request before holds no longer."""
    state = pl.col("state").replace_strict(STATE_OF, default=NOTHING, return_dtype=CODE)
    return states.request_states(trace.lifecycle).select(
        *REQUEST, ts_ns="from_ns", order=_order(MOVED), state=state,
        reason=pl.lit(NOTHING, CODE),
    )  # fmt: skip


def _sorted(trace: Trace) -> pl.LazyFrame:
    """When a request came to stand first in a queue that was sorted anew, or no longer did."""
    is_first = pl.col("place") == 0
    changes = is_first != is_first.shift(1).over(REQUEST).fill_null(value=False)
    told = queue_places(trace).filter(changes)
    return told.select(*REQUEST, ts_ns="sorted_ns", order=_order(LOOKED_AT), is_first=is_first)


def _arrivals(trace: Trace, steps: pl.LazyFrame) -> pl.LazyFrame:
    """Until the next batch is formed, nobody looks at who has just come."""
    came = (
        events(trace)
        .filter(pl.col("event") == "arrive")
        .select(*REQUEST, "ts_ns", order=_order(CAME), reason=pl.lit(NUMBER_OF["step"], CODE))
    )
    formed = steps.select("rank", formed_ns="formed_ns").sort("formed_ns")
    looked_at = (
        came.sort("ts_ns")
        .join_asof(
            formed, left_on="ts_ns", right_on="formed_ns", by="rank", strategy="forward",
            check_sortedness=False,
        )
        .filter(pl.col("formed_ns").is_not_null())
        .select(
            *REQUEST, ts_ns="formed_ns", order=_order(LOOKED_AT), reason=pl.lit(NOTHING, CODE)
        )
    )  # fmt: skip
    return pl.concat([came, looked_at, _ready(trace, looked_at)])


def _decisions(trace: Trace, lines: pl.LazyFrame) -> pl.LazyFrame:
    """The last decision about a request holds until the next one, or until the request moves."""
    numbers = {resource: NUMBER_OF[name] for resource, name in OF_RESOURCE.items()}
    named = (
        pl.col("resource")
        .fill_null("")
        .replace_strict(numbers, default=NUMBER_OF["other"], return_dtype=CODE)
    )
    reason = (
        pl.when(pl.col("verdict").is_in(IN_FAVOUR))
        .then(NOTHING)
        .when(_was_not_ready() & pl.lit(knows(trace, "decisions.resource")))
        .then(NUMBER_OF[PARKED])
        .otherwise(named)
    )
    about_requests = pl.col("subject_kind") == "request"
    holder = pl.when(pl.col("resource") == "queue").then("holder")
    heads = lines.select("rank", holder="request", head="line")
    return (
        trace.decisions.filter(about_requests, pl.col("ts_ns").is_not_null())
        .select(
            "rank", request="subject", ts_ns="ts_ns", order=_order(DECIDED),
            reason=reason.cast(CODE), holder=holder,
        )
        .join(heads, on=["rank", "holder"], how="left", maintain_order="left")
        .drop("holder")
    )  # fmt: skip


def _was_not_ready() -> pl.Expr:
    """A request was put off, and it lacked nothing that there is a resource for."""
    is_told = pl.col("reason").is_not_null() & pl.col("resource").is_null()
    return (pl.col("verdict") == "deferred") & is_told


def _ready(trace: Trace, looked_at: pl.LazyFrame) -> pl.LazyFrame:
    """Whose grammar or KV has come waits as parked until the scheduler notices, which moves it."""
    come = events(trace).filter(pl.col("event") == "ready").select(*REQUEST, "ts_ns")
    formed = looked_at.select(*REQUEST, formed_ns="ts_ns")
    return come.join(formed, on=REQUEST, how="left").select(
        *REQUEST, ts_ns=pl.max_horizontal("ts_ns", "formed_ns"), order=_order(READY),
        reason=pl.lit(NUMBER_OF[PARKED], CODE),
    )  # fmt: skip


def _joined_and_left(scheduled: pl.LazyFrame) -> tuple[pl.LazyFrame, ...]:
    """A request that is in two batches at once is in the later one, from when that begins.

    An engine that schedules ahead forms a batch while the one before it runs.
    """
    following = pl.col("from_ns").shift(-1).over(REQUEST)
    until = pl.min_horizontal("to_ns", following)
    in_order = scheduled.sort(*REQUEST, "from_ns", "to_ns", "step").with_columns(to_ns=until)
    joined = in_order.select(*REQUEST, "work", ts_ns="from_ns", order=_order(JOINED))
    left = in_order.select(
        *REQUEST, ts_ns="to_ns", order=_order(LEFT_BATCH), work=pl.lit(NOTHING, CODE)
    )
    formed_ns = pl.max_horizontal("formed_ns", pl.col("to_ns").shift(1).over(REQUEST))
    formed = in_order.select(
        *REQUEST, "from_ns", ts_ns=formed_ns, order=_order(JOINED), work=pl.lit(FORMED, CODE)
    )
    ahead = formed.filter(pl.col("ts_ns") < pl.col("from_ns")).drop("from_ns")
    return ahead, joined, left


def _on(points: pl.LazyFrame, lines: pl.LazyFrame) -> pl.LazyFrame:
    numbers = lines.select(*REQUEST, "line")
    on = points.with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
    return on.join(numbers, on=REQUEST, nulls_equal=True, maintain_order="left").drop(REQUEST)


def _order(number: int) -> pl.Expr:
    return pl.lit(number, CODE)
