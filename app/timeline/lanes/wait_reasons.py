"""What requests waited for: their waits cut into parts, a state for each kind of reason.

The reasons are those of `blame`, so a wait's parts add up to what it says of that time. A part
whose reason is not recorded keeps the state of the wait.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import polars as pl

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.causes import CAUSES, PARKED
from stepscope.app.palette import (
    ANOTHER_REASON,
    NO_BLOCKS,
    NO_BUDGET,
    NO_SLOT,
    NOT_READY,
    OTHER_STEPS,
)
from stepscope.ingest.derive.states import is_list_of_arrivals
from stepscope.ingest.trace import Trace

STATE_OF_CAUSE: dict[str, int] = {
    "no-blocks": NO_BLOCKS,
    "no-seat": NO_SLOT,
    **dict.fromkeys(("no-budget", "chunk", "encoder-budget"), NO_BUDGET),
    **dict.fromkeys(("bucket", "phase"), OTHER_STEPS),
    **dict.fromkeys(
        ("lora", "preemption", "selection", "pause", "dp-throttle", "other"), ANOTHER_REASON
    ),
    **{cause.name: NOT_READY for cause in CAUSES if cause.group == PARKED},
}
"""The state of a wait for each cause that says what a request lacked."""
MOST_ROWS = 1_000_000
"""Rows of batches up to which the time of all requests is split when a trace is laid out."""
MOST_REQUESTS = 32
KEY = ["rank", "request"]
OPENS, CLOSES = 1, 0
NOTHING = -1

_INTERVALS: WeakKeyDictionary[Trace, dict[str, pl.DataFrame]] = WeakKeyDictionary()


def intervals_of(trace: Trace, request: str) -> pl.DataFrame:
    """A request's time by cause, as `Blame.intervals` has it.

    Of a trace with more than MOST_ROWS that of the last few requests is cached.
    """
    known = _INTERVALS.setdefault(trace, {})
    key = "" if _is_split(trace) else request
    if key not in known:
        if len(known) >= MOST_REQUESTS:
            known.pop(next(iter(known)))
        known[key] = blame(trace, key or None).intervals
    return known[key].filter(pl.col("request") == request)


def with_reasons(trace: Trace, waits: pl.DataFrame) -> pl.DataFrame:
    """Cut `waits` wherever their reason changes; they have rank, request, start, end and state."""
    has_blame = trace.manifest.clock.has_times and not is_list_of_arrivals(trace)
    if waits.is_empty() or not has_blame or not _is_split(trace):
        return waits
    intervals_of(trace, "")
    reasons = _reasons(_INTERVALS[trace][""]).join(waits.select(KEY).unique(), on=KEY, how="semi")
    if reasons.is_empty():
        return waits
    numbered = waits.with_row_index("span")
    whole = numbered.join(reasons, on=KEY, how="anti")
    others = numbered.join(reasons, on=KEY, how="semi")
    return pl.concat([whole, _cut(others, reasons)]).drop("span")


def _is_split(trace: Trace) -> bool:
    return trace.num_rows("batch_rows") <= MOST_ROWS


def _reasons(intervals: pl.DataFrame) -> pl.DataFrame:
    """When which reason held: rank, request, from_ns, to_ns, reason (a state)."""
    state = pl.col("cause").cast(pl.String).replace_strict(
        STATE_OF_CAUSE, default=None, return_dtype=pl.UInt8
    )  # fmt: skip
    # An interval that two causes share is one of a spent budget: both have the same state.
    return (
        intervals.select(*KEY, "from_ns", "to_ns", reason=state)
        .drop_nulls(["request", "reason"])
        .unique([*KEY, "from_ns"], keep="first", maintain_order=True)
    )


def _cut(waits: pl.DataFrame, reasons: pl.DataFrame) -> pl.DataFrame:
    """Go through each request's time, where waits and reasons begin and end."""
    span, reason = pl.col("span").cast(pl.Int64), pl.col("reason").cast(pl.Int64)
    points = [
        waits.select(*KEY, at="start", order=OPENS, span=span, reason=None),
        waits.select(*KEY, at="end", order=CLOSES, span=NOTHING, reason=None),
        reasons.select(*KEY, at="from_ns", order=OPENS, span=None, reason=reason),
        reasons.select(*KEY, at="to_ns", order=CLOSES, span=None, reason=NOTHING),
    ]
    typed = [
        each.select(*KEY, "at", "order", pl.col("span", "reason").cast(pl.Int64)) for each in points
    ]
    pieces = (
        pl.concat(typed)
        .sort(*KEY, "at", "order", maintain_order=True)
        .with_columns(
            pl.col("span", "reason").forward_fill().over(KEY).fill_null(NOTHING),
            until=pl.col("at").shift(-1).over(KEY),
        )
        .filter(pl.col("span") != NOTHING, pl.col("at") < pl.col("until"))
        .with_columns(part=pl.struct("span", "reason").rle_id())
        .group_by("part", maintain_order=True)
        .agg(
            pl.col("span", "reason").first(),
            start=pl.col("at").first(),
            end=pl.col("until").last(),
        )
    )
    state = pl.when(pl.col("reason") == NOTHING).then("state").otherwise("reason")
    return (
        pieces.with_columns(pl.col("span").cast(pl.UInt32))
        .join(waits.drop("start", "end"), on="span", maintain_order="left")
        .with_columns(state=state.cast(pl.UInt8))
        .select(waits.columns)
    )
