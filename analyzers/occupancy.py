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


def with_holder(spans: pl.LazyFrame, since: str) -> pl.LazyFrame:
    """Add to each row of `holds` the block before it that holds its core longest.

    What is before what goes by the column `since`: `dispatch_ns` for who was given the core,
    `ts_ns` for who ran on it; of two at one time the pending one is later. Adds holder_task,
    holder_block and holder_end_ns; null for the first block of a core.
    """
    slot = [pl.col("slot").eq(name).fill_null(value=False) for name in ("pending", "running")]
    ties = ("end_ns", "task", "block", "ts_ns", "shape")
    lasts = pl.col("end_ns") == pl.col("end_ns").cum_max()
    return spans.sort(*CORE, since, *slot, *ties).with_columns(
        pl.when(lasts).then(column).forward_fill().shift(1).over(CORE).alias(f"holder_{column}")
        for column in ("task", "block", "end_ns")
    )


def units(spans: pl.LazyFrame) -> pl.LazyFrame:
    """What blocks of a shape compete for: single cores for AIC and AIV, whole groups for MIX.

    Columns: rank, shape, unit (core or group), dispatch_ns, end_ns; one row per block and unit.
    """
    when = ("dispatch_ns", "end_ns")
    kind = pl.col("core_kind").str.slice(0, 3).cast(SHAPE, strict=False).fill_null(pl.col("shape"))
    cores = spans.select("rank", kind.alias("shape"), pl.col("core").alias("unit"), *when)
    groups = spans.filter(pl.col("group").is_not_null()).select(
        "rank", pl.lit("MIX", SHAPE).alias("shape"), pl.col("group").alias("unit"), *when
    )
    return pl.concat([cores.filter(pl.col("shape").is_in(["AIC", "AIV"])), groups])


def busy(units: pl.LazyFrame, recovery_ns: int) -> pl.LazyFrame:
    """Spans in which a unit holds a block or is within `recovery_ns` of having held one.

    Columns: rank, shape, unit, from_ns, to_ns; the spans of a unit neither touch nor overlap.
    """
    unit = [*POOL, "unit"]
    until = pl.col("end_ns") + recovery_ns
    is_apart = pl.col("dispatch_ns") > until.cum_max().shift(1)
    return (
        units.sort("dispatch_ns")
        .with_columns(_span=is_apart.fill_null(value=True).cum_sum().over(unit))
        .group_by(*unit, "_span")
        .agg(from_ns=pl.col("dispatch_ns").min(), to_ns=until.max())
        .drop("_span")
    )
