"""When each step's batch was formed, in time and in the order of all that was told."""

from __future__ import annotations

import polars as pl

from stepscope.ingest.derive.order import Order

BEFORE_ALL = 0


def formed_steps(order: Order) -> pl.DataFrame:
    """When each step's batch was formed: step, ts_ns, seq, in order.

    The time is what the step says, else that of the last of its rows and of what was decided before
    it began, else when it began. The place is that of the last that was told of the step by then,
    and of the step itself where it was told as it was formed, and not when it had ended.
    """
    rows, decided = _told(order, "batch_rows"), _decided(order)
    steps = _begun(order).join(
        rows.group_by("step").agg(rows_ns=pl.col("ts_ns").max(), of_rows=pl.col("seq").max()),
        on="step", how="full", coalesce=True,
    )  # fmt: skip
    timed = _with_time(steps, pl.concat([rows, decided]))
    told = [_told(order, table) for table in ("lifecycle", "allocations", "queue_order")]
    by_then = _until(timed, pl.concat([rows, decided, *told]), "ts_ns")
    last = by_then.group_by("step").agg(last=pl.col("seq").max())
    return _placed(timed.join(last, on="step", how="left"), order)


def _begun(order: Order) -> pl.DataFrame:
    """What the steps themselves say; of one that has several rows the first."""
    rows = order.rows("steps", ("step", "ts_ns", "formed_ns", "dur_ns")).drop_nulls("step")
    return rows.group_by("step").agg(
        begun=pl.col("ts_ns").min(),
        formed=pl.col("formed_ns").min(),
        dur_ns=pl.col("dur_ns").max(),
        of_step=pl.col("seq").min(),
    )


def _told(order: Order, table: str) -> pl.DataFrame:
    return order.rows(table, ("step", "ts_ns")).drop_nulls("step")


def _decided(order: Order) -> pl.DataFrame:
    """What was decided about requests and buckets: what a device decides comes when a step runs."""
    rows = order.rows("decisions", ("step", "ts_ns", "subject_kind"))
    return rows.filter(pl.col("subject_kind") != "task").drop("subject_kind").drop_nulls("step")


def _until(steps: pl.DataFrame, rows: pl.DataFrame, bound: str) -> pl.DataFrame:
    bounds = steps.select("step", until=bound)
    return rows.join(bounds, on="step").filter(pl.col("ts_ns") <= pl.col("until"))


def _with_time(steps: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    bounded = steps.with_columns(bound=pl.coalesce("formed", pl.max_horizontal("rows_ns", "begun")))
    told = _until(bounded, rows, "bound").group_by("step").agg(told_ns=pl.col("ts_ns").max())
    told_ns = pl.when(pl.col("rows_ns").is_not_null()).then("told_ns")
    return bounded.join(told, on="step", how="left").with_columns(
        ts_ns=pl.coalesce("formed", told_ns, "begun")
    )


def _placed(steps: pl.DataFrame, order: Order) -> pl.DataFrame:
    """Add `seq`, and put the steps into its order."""
    latest_ns = pl.Series("latest_ns", order.times_of(steps["of_step"].fill_null(BEFORE_ALL)))
    by_time = pl.Series("by_time", [order.last_by(ts_ns) for ts_ns in steps["ts_ns"].to_list()])
    as_formed = (pl.col("begun") <= pl.col("ts_ns")) & (latest_ns <= pl.col("ts_ns"))
    at_once = pl.max_horizontal("of_rows", "of_step")
    seq = (
        pl.when(as_formed, pl.col("dur_ns") == 0)
        .then(at_once)
        .when(as_formed)
        .then(pl.max_horizontal("last", at_once))
        .otherwise(pl.max_horizontal("of_rows", pl.coalesce("last", by_time)))
    )
    placed = steps.with_columns(seq=seq)
    return placed.select("step", "ts_ns", "seq").sort("seq", "ts_ns", "step")
