"""Which block holds which core, from when to when.

A block that was dispatched to a core's running slot holds it from its dispatch to its end. One that
was dispatched to the pending slot holds that from its dispatch to its start, then runs to its end.
So either holds something of the core from its dispatch to its end.

Everything here is an expression over whole columns of `core_spans`: who holds a core is a running
maximum of ends, not a comparison of pairs of blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from stepscope.ingest.schema import SHAPES

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FAR_NS = 2**61  # after any Unix time until 2043; the sum of three stays within an int64
BLOCK = ("rank", "task", "block")
CORE = ("rank", "core")
POOL = ("rank", "shape")
SHAPE = pl.Enum(SHAPES)  # a small number: groups and sorts much faster than text


def holds(trace: Trace) -> pl.LazyFrame:
    """`core_spans` with ready <= dispatch <= ts <= end, and a far end where there was none.

    `due_ns` is when the block was ready even if it was dispatched before that, to wait on its core.
    """
    times = pl.col("ready_ns", "dispatch_ns", "ts_ns", "end_ns").clip(-FAR_NS, FAR_NS)
    return (
        trace.core_spans.filter(pl.col("core").is_not_null() & pl.col("ts_ns").is_not_null())
        .with_columns(times, pl.col("shape").cast(SHAPE, strict=False))
        .with_columns(pl.min_horizontal("dispatch_ns", "ts_ns").alias("dispatch_ns"))
        .with_columns(
            ready_ns=pl.min_horizontal("ready_ns", "dispatch_ns"),
            due_ns=pl.coalesce("ready_ns", "dispatch_ns"),
        )
        .with_columns(pl.col("end_ns").fill_null(FAR_NS))
        .filter(pl.col("end_ns") >= pl.col("ts_ns"))
    )


def is_whole(trace: Trace, table: str = "core_spans") -> bool:
    """Whether no row of the table can be missing, so that what is not there did not happen."""
    return trace.manifest.closed and trace.manifest.tables.get(table) == "complete"


def is_measured(trace: Trace) -> bool:
    """Whether times of blocks are more than an order in which one came after the other."""
    return trace.manifest.tables.get("core_spans") != "ordered"


def in_order(since: str) -> pl.Expr:
    """A sort key: by time, then the pending slot after the running one, then anything but rank.

    One 128-bit number sorts several times faster than columns do. The last part is a hash of the
    row: rows of one moment have an order, and it is not that in which they were recorded.
    """
    slot = pl.when(pl.col("slot") == "pending").then(2).when(pl.col("slot") == "running").then(1)
    moment = pl.col(since) * 4 + slot.otherwise(0)
    row = pl.struct("task", "block", "core", "shape", "dispatch_ns", "ts_ns", "end_ns").hash()
    return moment.cast(pl.Int128) * 2**64 + row.cast(pl.Int128)


def with_holder(spans: pl.LazyFrame, since: str) -> pl.LazyFrame:
    """Add to each row of `holds` the block before it that holds its core longest.

    What is before what goes by the column `since`: `dispatch_ns` for who was given the core,
    `ts_ns` for who ran on it; of two at one time the pending one is later. Adds holder_task,
    holder_block and holder_end_ns; null for the first block of a core. Rows are in that order.
    """
    lasts = pl.col("end_ns") == pl.col("end_ns").cum_max()
    row = pl.int_range(pl.len(), dtype=pl.UInt32)
    holder = pl.when(lasts).then("_row").forward_fill().shift(1).over(CORE)
    return (
        spans.sort(in_order(since))
        .with_columns(_row=row)
        .with_columns(_row=holder)
        .with_columns(
            pl.col(column).gather("_row").alias(f"holder_{column}")
            for column in ("task", "block", "end_ns")
        )
        .drop("_row")
    )


def busy(spans: pl.LazyFrame, recovery_ns: int) -> pl.LazyFrame:
    """When what blocks compete for holds one, or is within `recovery_ns` of having held one.

    That is single cores for AIC and AIV, and whole groups for MIX. Columns: rank, shape, unit (core
    or group), from_ns, to_ns; the spans of a unit neither touch nor overlap.
    """
    kind = pl.col("core_kind").str.slice(0, 3).cast(SHAPE, strict=False).fill_null(pl.col("shape"))
    held = spans.select(
        *CORE, "group", kind=kind, from_ns="dispatch_ns", to_ns=pl.col("end_ns") + recovery_ns
    )
    # Back to back, the blocks of a core are one span: what is left to sort by group is little.
    by_core = _merged(held, [*CORE, "group", "kind"]).collect().lazy()
    cores = by_core.filter(pl.col("kind").is_in(["AIC", "AIV"])).select(
        "rank", pl.col("kind").alias("shape"), pl.col("core").alias("unit"), "from_ns", "to_ns"
    )
    groups = by_core.filter(pl.col("group").is_not_null()).select(
        "rank", pl.lit("MIX", SHAPE).alias("shape"), pl.col("group").alias("unit"), "from_ns",
        "to_ns",
    )  # fmt: skip
    return _merged(pl.concat([cores, groups]), [*POOL, "unit"])


def _merged(spans: pl.LazyFrame, unit: list[str]) -> pl.LazyFrame:
    """Join the spans [from_ns, to_ns] of a unit that touch or overlap."""
    last = spans.group_by(unit).agg(last_ns=pl.col("to_ns").max())
    is_apart = pl.col("from_ns") > pl.col("_before_ns")
    return (
        spans.sort("from_ns")
        .with_columns(_before_ns=pl.col("to_ns").cum_max().shift(1).over(unit))
        .filter(is_apart.fill_null(value=True))
        .select(*unit, "from_ns", to_ns=pl.col("_before_ns").shift(-1).over(unit))
        .join(last, on=unit, how="left", nulls_equal=True)
        .with_columns(to_ns=pl.coalesce("to_ns", "last_ns"))
        .drop("last_ns")
    )
