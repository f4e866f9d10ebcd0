"""A lane for each request: front end, waiting, prefill, decode, preempted, recompute, no batch.

What each is in is what `ingest.derive.states` says; what it waited for, `wait_reasons`. A batch row
is a span from the beginning of its step to the end. Where a request neither waits nor is in a
batch, the lane says so: a gap would look as if nothing were known of it. Where no batch was
recorded, it runs, and nobody knows in which.
"""

from __future__ import annotations

import polars as pl

from stepscope.app import palette
from stepscope.app.printable import plain
from stepscope.app.timeline.lanes.lane import (
    LaneName,
    LaneSpans,
    clipped,
    ordered,
    placeable,
    several_ranks,
    span_rows,
)
from stepscope.app.timeline.lanes.wait_reasons import with_reasons
from stepscope.ingest.derive import states
from stepscope.ingest.derive.states import is_list_of_arrivals, request_states, step_times
from stepscope.ingest.trace import Trace

KEY = ["rank", "request"]
TABLES = ("batch_rows", "lifecycle")
WAITS = {
    states.WAITING: palette.WAITING, states.PREEMPTED: palette.PREEMPTED,
    states.FRONT_END: palette.FRONT_END, states.DELIVERY: palette.FRONT_END,
}  # fmt: skip
SPAN = (*KEY, "ref", "start", "end", "state", "table")


def request_lanes(trace: Trace, last_ns: int) -> LaneSpans:
    """Lay out `batch_rows` and `lifecycle`; what has not ended reaches `last_ns`."""
    computed, moved = _computed(trace, last_ns), _moved(trace, last_ns)
    lanes = ordered(_seen(trace))
    ranks = lanes["rank"].unique().to_list()
    names = tuple(
        LaneName(rank, several_ranks("", rank, ranks), plain(request), (("request", request),))
        for rank, request in lanes.select(KEY).iter_rows()
    )
    lasts = pl.col("start") < pl.col("end")
    waits = moved.filter(pl.col("state").is_not_null(), lasts | is_list_of_arrivals(trace))
    between = palette.IDLE if len(computed) else palette.UNKNOWN
    waited = pl.concat([waits.select(SPAN), _let_in(computed, moved, between)])
    has_reasons = pl.col("state").is_in([palette.WAITING, palette.IDLE])
    spans = [
        computed, waited.filter(~has_reasons), with_reasons(trace, waited.filter(has_reasons))
    ]  # fmt: skip
    every = pl.concat(spans).join(lanes, on=KEY)
    return LaneSpans(names, [pl.concat(span_rows(_of(every, table), table) for table in TABLES)])


def _of(spans: pl.DataFrame, table: str) -> pl.DataFrame:
    return spans.filter(pl.col("table") == table)


def _seen(trace: Trace) -> pl.DataFrame:
    seen = [placeable(trace, table, "request").select(KEY) for table in TABLES]
    return pl.concat(seen).unique().collect()


def _computed(trace: Trace, last_ns: int) -> pl.DataFrame:
    phases = {"prefill": palette.PREFILL, "decode": palette.DECODE}
    phase = pl.col("phase").replace_strict(phases, default=palette.UNKNOWN, return_dtype=pl.UInt8)
    is_again = pl.col("is_recompute").fill_null(value=False)
    state = pl.when(is_again).then(pl.lit(palette.RECOMPUTE, pl.UInt8)).otherwise(phase)
    times = step_times(trace).select("rank", "step", start="from_ns", end="to_ns")
    end = pl.max_horizontal("start", pl.col("end").fill_null(last_ns))
    return (
        placeable(trace, "batch_rows", "request", "step")
        .join(times, on=["rank", "step"], how="left", maintain_order="left")
        .with_columns(end=end, state=state, table=pl.lit("batch_rows"))
        .select(SPAN)
        .collect()
    )


def _moved(trace: Trace, last_ns: int) -> pl.DataFrame:
    """What each request was in from event to event; `state` is null where it was let in, or out."""
    is_over = pl.col("state") == states.ENDED
    is_instant = is_over | pl.lit(is_list_of_arrivals(trace))
    last = pl.when(is_instant).then("from_ns").otherwise(last_ns)
    return (
        request_states(placeable(trace, "lifecycle", "request"))
        .with_columns(
            start="from_ns",
            end=clipped(pl.max_horizontal("from_ns", pl.coalesce("to_ns", last))),
            state=pl.col("state").replace_strict(WAITS, default=None, return_dtype=pl.UInt8),
            table=pl.lit("lifecycle"),
            is_over=is_over,
        )
        .select(*SPAN, "is_over")
        .collect()
    )


def _let_in(computed: pl.DataFrame, moved: pl.DataFrame, state: int) -> pl.DataFrame:
    """The time between the first and the last of a request in which it is nowhere else: `state`.

    Each gap is told by what came before it: who was let in, or the batch that ended.
    """
    waits_until = pl.when(pl.col("state").is_null()).then("start").otherwise("end")
    begins = moved.with_columns(end=waits_until)
    ends = moved.filter(~pl.col("is_over")).with_columns(start="end")
    before = [pl.col(name).shift(1).over(KEY) for name in ("ref", "table", "is_over")]
    return (
        pl.concat([begins, ends, computed], how="diagonal")
        .sort(*KEY, "start", "end", maintain_order=True)
        .with_columns(
            *before,
            start=pl.col("end").cum_max().shift(1).over(KEY),
            end="start",
            state=pl.lit(state, pl.UInt8),
        )
        .filter(pl.col("start") < pl.col("end"), ~pl.col("is_over").fill_null(value=False))
        .select(SPAN)
    )
