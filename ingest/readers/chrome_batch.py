"""What is kept of a window of events: slices as numbers, their args packed, and all the rest."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ingest.derive.collectives import tells_of_collectives
from stepscope.ingest.limits import DEFAULTS, Limits
from stepscope.ingest.readers.bounded import within
from stepscope.ingest.readers.event_frames import NUMBERS, Events
from stepscope.ingest.spool import packed


@dataclass(frozen=True, slots=True)
class Batch:
    """Events of a window.

    forms   as `Events.forms`
    slices  complete events as they should be: event, form, ts_ns, dur_ns, correlation, is_external
            (of the latter: it is the other number that may serve)
    args    the args of `slices`, packed
    telling row and args of slices that tell of collectives
    others  all other events: their number (`event`) and the columns of `Events.rows` but `NUMBERS`
    repaired    how many events were cut to the limits, by reason
    """

    num_events: int
    forms: pl.DataFrame
    slices: pl.DataFrame
    args: bytes | None
    telling: pl.DataFrame
    others: pl.DataFrame
    repaired: dict[str, int]


def batch_of(events: Events, limits: Limits = DEFAULTS) -> Batch:
    """Sort the events of a window into what is kept of them."""
    events, repaired = within(events, limits)
    told = events.forms.select(is_complete=pl.col("ph") == "X").with_columns(
        telling=tells_of_collectives(events.forms["name"])
    )
    rows = events.rows.with_row_index("event")
    is_plain = (
        told["is_complete"].gather(rows["form"])
        & rows.select(
            pl.col("ts_ns").is_not_null() & (pl.col("dur_ns") >= 0).fill_null(value=False)
        ).to_series()
    )
    slices, others = rows, rows.clear()
    if not is_plain.all():
        slices, others = rows.filter(is_plain), rows.filter(~is_plain)
    telling = told["telling"].gather(slices["form"])
    return Batch(
        len(rows),
        events.forms,
        slices.select("event", "form", "ts_ns", "dur_ns", *_correlation(slices)),
        packed(slices["args"]) if len(slices) else None,
        slices.select("args").with_row_index("row").filter(telling).with_columns(_copied("args")),
        others.drop(NUMBERS).with_columns(_copied("id", "id2", "args")),
        repaired,
    )


def _copied(*names: str) -> pl.Expr:
    """Text by itself: what was cut out of a window keeps the whole window in memory."""
    return pl.col(names) + ""


def _correlation(slices: pl.DataFrame) -> list[pl.Series]:
    """The number that may tie a launch to what it launched, and whether it is the second best.

    "External id" counts something else than "correlation"; it serves where there is none of the
    latter in the whole file, as without a device.
    """
    is_external = slices["correlation"].null_count() == len(slices)
    number = slices["external_id"] if is_external else slices["correlation"]
    flag = pl.repeat(is_external, len(slices), dtype=pl.Boolean, eager=True)
    return [number.alias("correlation"), flag.alias("is_external")]
