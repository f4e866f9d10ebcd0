"""When each step's batch was formed, in time and in the order of all that was told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from stepscope.ingest.derive.distinct_numbers import Among, distinct
from stepscope.ingest.derive.order import Order
from stepscope.ingest.frames import only, without_nulls
from stepscope.ingest.times import EARLIEST_NS

BEFORE_ALL = 0
BLOCK_ROWS = 1 << 14


def formed_steps(order: Order, *, is_closed: bool = True) -> pl.DataFrame:
    """When each step's batch was formed: step, ts_ns, seq, in order.

    The time is what the step says, else that of the last of its rows and of what was decided before
    it began, else when it began. The place is that of the last that was told of the step by then,
    and of the step itself where it was told as it was formed, and not when it had ended. Where the
    recording was cut off, a batch without a step of its own may lack rows: it is not taken for one
    that was formed.
    """
    rows, decided = _told(order, "batch_rows"), _decided(order)
    begun = _begun(order)
    if not is_closed:
        rows = rows.join(_surely_formed(begun, rows), on="step", how="semi")
    timed = _with_time(_with_rows(begun, rows), [rows, decided])
    told = [_moved(order), *(_told(order, table) for table in ("allocations", "queue_order"))]
    last = _most(timed, [rows, decided, *told], "seq", until="ts_ns")
    return _placed(timed.with_columns(last=last), order)


def _surely_formed(begun: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """The steps that say so themselves; where none does, those behind which another was formed."""
    if len(begun):
        return begun.select("step")
    return rows.select("step").filter(pl.col("step") != pl.col("step").last())


def _begun(order: Order) -> pl.DataFrame:
    """What the steps themselves say; of one that has several rows the first."""
    rows = order.rows("steps", ("step", "ts_ns", "formed_ns", "dur_ns")).drop_nulls("step")
    if (np.diff(rows["step"].to_numpy()) > 0).all():
        return rows.select("step", "dur_ns", begun="ts_ns", formed="formed_ns", of_step="seq")
    return (
        rows.group_by("step")
        .agg(
            begun=pl.col("ts_ns").min(),
            formed=pl.col("formed_ns").min(),
            dur_ns=pl.col("dur_ns").max(),
            of_step=pl.col("seq").min(),
        )
        .sort("step")
    )


def _with_rows(begun: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """All steps that are told of, sorted, with the time and place of the last of their rows."""
    known = distinct([begun["step"].to_numpy(), rows["step"].to_numpy()])
    steps = pl.DataFrame({"step": known}, schema={"step": pl.Int64})
    if len(steps) == len(begun):
        steps = begun
    else:
        steps = steps.join(begun, on="step", how="left", maintain_order="left")
    return steps.with_columns(
        rows_ns=_most(steps, [rows], "ts_ns"), of_rows=_most(steps, [rows], "seq")
    )


def _told(order: Order, table: str) -> pl.DataFrame:
    return without_nulls(order.rows(table, ("step", "ts_ns")), ["step"])


def _moved(order: Order) -> pl.DataFrame:
    """What happened to requests; who arrives just as a batch is formed has no part in that."""
    rows = order.rows("lifecycle", ("step", "ts_ns", "event"))
    others = rows["event"] != "arrive"
    moved = rows.drop("event")
    return without_nulls(only(moved, others) if order.is_recorded else moved, ["step"])


def _decided(order: Order) -> pl.DataFrame:
    """What was decided about requests and buckets: what a device decides comes when a step runs."""
    rows = order.rows("decisions", ("step", "ts_ns", "subject_kind"))
    others = rows["subject_kind"] != "task"
    return without_nulls(only(rows.drop("subject_kind"), others), ["step"])


def _most(
    steps: pl.DataFrame, parts: Sequence[pl.DataFrame], column: str, until: str | None = None
) -> pl.Series:
    """The most of a column among each step's rows that were told by a time; null where none was.

    The steps are sorted. Arrays, as a join and groups of millions take seconds, and some rows after
    others: what is needed of them on the way stays in the cache of a core.
    """
    known = steps["step"].to_numpy()
    bounds = None if until is None else steps[until].fill_null(EARLIEST_NS).to_numpy()
    most, is_told = np.full(len(known), EARLIEST_NS), np.zeros(len(known), bool)
    for part in parts if len(known) else ():
        among = Among(known, len(part))
        for rows in part.iter_slices(BLOCK_ROWS):
            place, values = among.places(rows["step"].to_numpy()), rows[column].to_numpy()
            is_then = place >= 0
            if bounds is not None:
                is_then &= rows["ts_ns"].to_numpy() <= bounds[place]
            if not is_then.all():
                place, values = place[is_then], values[is_then]
            np.maximum.at(most, place, values)
            is_told[place] = True
    found = pl.Series(column, most).to_frame().select(pl.when(pl.Series(is_told)).then(column))
    return found.to_series()


def _with_time(steps: pl.DataFrame, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    bound = pl.coalesce("formed", pl.max_horizontal("rows_ns", "begun"))
    bounded = steps.with_columns(bound=bound)
    told = bounded.with_columns(told_ns=_most(bounded, parts, "ts_ns", until="bound"))
    told_ns = pl.when(pl.col("rows_ns").is_not_null()).then("told_ns")
    return told.with_columns(ts_ns=pl.coalesce("formed", told_ns, "begun"))


def _before_it_ran(placed: pl.DataFrame, order: Order) -> pl.DataFrame:
    """Put no step behind what lay in slots once it ran: that changes when its batch is formed."""
    rows = _told(order, "slot_tokens")
    if not len(rows):
        return placed
    ran = rows.group_by("step").agg(ran=pl.col("seq").min())
    known = placed.join(ran, on="step", how="left", maintain_order="left")
    before = [
        seq if first is None or seq < first else order.runs.before(first) or BEFORE_ALL
        for seq, first in known.select("seq", "ran").iter_rows()
    ]
    return placed.with_columns(seq=pl.Series(before, dtype=pl.Int64))


def _placed(steps: pl.DataFrame, order: Order) -> pl.DataFrame:
    """Add `seq`, and put the steps into its order."""
    latest_ns = pl.Series("latest_ns", order.times_of(steps["of_step"].fill_null(BEFORE_ALL)))
    by_time = pl.Series("by_time", order.all_last_by(steps["ts_ns"].to_numpy()))
    as_formed = (pl.col("begun") <= pl.col("ts_ns")) & (latest_ns <= pl.col("ts_ns"))
    at_once = pl.max_horizontal("of_rows", "of_step")
    seq = (
        pl.when(as_formed, pl.col("dur_ns") == 0)
        .then(at_once)
        .when(as_formed)
        .then(pl.max_horizontal("last", at_once))
        .otherwise(pl.max_horizontal("of_rows", pl.coalesce("last", by_time)))
    )
    placed = _before_it_ran(steps.with_columns(seq=seq), order)
    return placed.select("step", "ts_ns", "seq").sort("seq", "ts_ns", "step")
