"""Which block holds which core, from when to when.

A block that was dispatched to a core's running slot holds it from its dispatch to its end. One that
was dispatched to the pending slot holds that from its dispatch to its start, then runs to its end.
So either holds something of the core from its dispatch to its end.

Everything here is an expression over whole columns of `core_spans`: who holds a core is a running
maximum of ends, not a comparison of pairs of blocks.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.interval_union import joined
from stepscope.analyzers.views.known import any_row, knows
from stepscope.analyzers.views.once import once
from stepscope.ingest.schema import CORE_KINDS, CORE_SLOTS, SHAPES
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

BLOCK = ("rank", "task", "block")
CORE = ("rank", "core")
POOL = ("rank", "shape")
SHAPE = pl.Enum(SHAPES)  # a small number: groups and sorts much faster than text
SLOT = pl.Enum(CORE_SLOTS)
CORE_KIND = pl.Enum(CORE_KINDS)


def knows_ends(trace: Trace) -> bool:
    """Tell whether the ends of blocks were recorded, so that a block without one never ended.

    If no block has an end although tasks with blocks retired, ends were not recorded.
    """
    if knows(trace, "core_spans.end_ns"):
        return True
    retired = trace.tasks.filter(pl.col("retired_ns").is_not_null())
    ran = retired.join(trace.core_spans, on=["rank", "task"], how="semi")
    return trace.manifest.is_whole("core_spans") and not any_row(ran)


def holds(trace: Trace) -> pl.LazyFrame:
    """`core_spans` with ready <= dispatch <= ts <= end, and a far end where there was none.

    `due_ns` is when the block was ready even if it was dispatched before that, to wait on its core.
    Rows are in the order in which blocks were given their cores, and have their holder: see
    `with_holder`.
    """
    return once(trace, "holds", lambda: with_holder(_holds(trace), since="dispatch_ns"))


def _holds(trace: Trace) -> pl.LazyFrame:
    times = pl.col("ready_ns", "dispatch_ns", "ts_ns", "end_ns").clip(-FAR_NS, FAR_NS)
    return (
        trace.core_spans.drop("thread")
        .filter(pl.col("core").is_not_null() & pl.col("ts_ns").is_not_null())
        .with_columns(
            times,
            pl.col("shape").cast(SHAPE, strict=False),
            pl.col("slot").cast(SLOT, strict=False),
            pl.col("core_kind").cast(CORE_KIND, strict=False),
        )
        .with_columns(pl.min_horizontal("dispatch_ns", "ts_ns").alias("dispatch_ns"))
        .with_columns(
            ready_ns=pl.min_horizontal("ready_ns", "dispatch_ns"),
            due_ns=pl.coalesce("ready_ns", "dispatch_ns"),
        )
        .with_columns(pl.col("end_ns").fill_null(FAR_NS))
        .filter(pl.col("end_ns") >= pl.col("ts_ns"))
    )


def run_in_turn(trace: Trace) -> bool:
    """Whether every core ran its blocks one after the other, in the order in which it got them.

    Mostly it is so, and much need not be looked at then.
    """
    is_late = pl.col("holder_end_ns") > pl.col("ts_ns")
    is_nothing = pl.col("end_ns") == pl.col("ts_ns")
    return not holds(trace).select((is_late | is_nothing).any()).collect().item()


def with_holder(spans: pl.LazyFrame, since: str) -> pl.LazyFrame:
    """Sort `spans`, and add to each block the one before it that holds its core longest.

    What is before what goes by the column `since`: `dispatch_ns` for who was given the core,
    `ts_ns` for who ran on it; of two at one time the pending one is later. Adds holder, its row,
    and holder_end_ns; null for the first block of a core.
    """
    moment = _moment(since)
    ordered = _with_holder(spans.sort(moment), moment)
    if ordered["is_tied"].any():
        ordered = _with_holder(ordered.lazy().sort(_moment_and_row(moment)), moment)
    return ordered.lazy().drop("is_tied")


def with_holder_named(spans: pl.LazyFrame) -> pl.LazyFrame:
    """Add holder_task and holder_block to all the rows that `with_holder` gave."""
    named = (pl.col(name).gather("holder").alias(f"holder_{name}") for name in ("task", "block"))
    return spans.with_columns(named)


def _with_holder(ordered: pl.LazyFrame, moment: pl.Expr) -> pl.DataFrame:
    """Also tell whether a row is of one moment and one core with that before it."""
    lasts = pl.col("end_ns") == pl.col("end_ns").cum_max()
    row = pl.int_range(pl.len(), dtype=pl.UInt32)
    holder = pl.when(lasts).then("holder").forward_fill().shift(1)
    return (
        ordered.with_columns(holder=row, is_tied=moment)
        .with_columns(
            holder=holder.over(CORE), is_tied=(pl.col("is_tied").diff() == 0).over(CORE)
        )
        .with_columns(holder_end_ns=pl.col("end_ns").gather("holder"))
        .collect()
    )  # fmt: skip


def _moment(since: str) -> pl.Expr:
    """A sort key: by time, then the pending slot after the running one."""
    slot = pl.col("slot").to_physical().cast(pl.Int64) + 1
    return pl.col(since).clip(upper_bound=FAR_NS - 1) * 4 + slot.fill_null(0)


def _moment_and_row(moment: pl.Expr) -> pl.Expr:
    """A sort key for rows of one moment: they have an order that is not that of the recording."""
    row = pl.struct("task", "block", "core", "shape", "dispatch_ns", "ts_ns", "end_ns").hash()
    return moment.cast(pl.Int128) * 2**64 + row.cast(pl.Int128)


def dispatched(trace: Trace) -> pl.LazyFrame:
    """Blocks that ended: overhead_ns, of it launch_ns after the dispatch, and executed_ns.

    The overhead is the time from when a block was ready and its core had nothing else to run until
    it began; of a block of which neither was recorded, nothing.
    """
    has_shape = pl.col("shape").is_in(["AIC", "AIV", "MIX"])
    spans = holds(trace)
    blocks = spans.filter(pl.col("end_ns") < FAR_NS, has_shape)
    if any_row(spans.filter(~has_shape.fill_null(value=False))) or not run_in_turn(trace):
        blocks = with_holder(blocks, since="ts_ns")
    free = pl.col("holder_end_ns")
    could = pl.max_horizontal("due_ns", free)
    launched = pl.max_horizontal("due_ns", "dispatch_ns", free)
    return blocks.with_columns(
        overhead_ns=(pl.col("ts_ns") - could).clip(lower_bound=0),
        launch_ns=(pl.col("ts_ns") - launched).clip(lower_bound=0),
        executed_ns=pl.col("end_ns") - pl.col("ts_ns"),
    )


def mix_blocks(trace: Trace) -> pl.LazyFrame:
    """The MIX blocks that ended: their place, length, and how far apart their parts start."""
    late = pl.col("core").sort_by("ts_ns", "core").last()
    return (
        holds(trace)
        .filter(pl.col("shape") == "MIX")
        .group_by(*BLOCK)
        .agg(
            pl.col("step", "group", "ts_ns").min(),
            pl.col("end_ns").max(),
            core=late,
            skew_ns=pl.col("ts_ns").max() - pl.col("ts_ns").min(),
            length_ns=pl.col("end_ns").max() - pl.col("ts_ns").min(),
            run_ns=(pl.col("end_ns") - pl.col("ts_ns")).max(),
        )
        .filter(pl.col("end_ns") < FAR_NS)
    )


def places(trace: Trace) -> pl.LazyFrame:
    """For what the blocks on each core were built: rank, core, group, core_kind, shape, num_blocks.

    A core has one row, or three where its blocks are of several shapes: what holds for all blocks
    of a place need not be asked of each.
    """
    place = (*CORE, "group", "core_kind", "shape")
    return once(trace, "places", lambda: holds(trace).group_by(place).agg(num_blocks=pl.len()))


def busy(trace: Trace, recovery_ns: int) -> pl.LazyFrame:
    """When what blocks compete for holds one, or is within `recovery_ns` of having held one.

    That is single cores for AIC and AIV, and whole groups for MIX. Columns: rank, shape, unit (core
    or group), from_ns, to_ns; the spans of a unit neither touch nor overlap.
    """
    kind = (
        pl.col("core_kind").cast(pl.String).str.slice(0, 3).cast(SHAPE).fill_null(pl.col("shape"))
    )
    units = places(trace).with_columns(kind=kind).select(*CORE, "group", "kind").unique().collect()
    if units.select(CORE).is_duplicated().any():
        held = holds(trace).select(
            *CORE, "group", kind=kind, from_ns="dispatch_ns", to_ns=pl.col("end_ns") + recovery_ns
        )
        by_core = joined(held, [*CORE, "group", "kind"])
    else:
        # Back to back, the blocks of a core are one span: what is left to sort by group is little.
        by_core = _intervals(trace, recovery_ns).join(units.lazy(), on=CORE, how="left")
    by_core = by_core.collect().lazy()
    cores = by_core.filter(pl.col("kind").is_in(["AIC", "AIV"])).select(
        "rank", pl.col("kind").alias("shape"), pl.col("core").alias("unit"), "from_ns", "to_ns"
    )
    groups = by_core.filter(pl.col("group").is_not_null()).select(
        "rank", pl.lit("MIX", SHAPE).alias("shape"), pl.col("group").alias("unit"), "from_ns",
        "to_ns",
    )  # fmt: skip
    return joined(pl.concat([cores, groups]), [*POOL, "unit"])


def _intervals(trace: Trace, recovery_ns: int) -> pl.LazyFrame:
    """When each core was held or within `recovery_ns` of it: rank, core, from_ns, to_ns."""
    until_ns = pl.col("holder_end_ns") + recovery_ns
    last = holds(trace).group_by(CORE).agg(last_ns=pl.col("end_ns").max() + recovery_ns)
    return (
        holds(trace)
        .filter((pl.col("dispatch_ns") > until_ns).fill_null(value=True))
        .select(*CORE, from_ns="dispatch_ns", to_ns=until_ns.shift(-1).over(CORE))
        .join(last, on=CORE, how="left")
        .with_columns(to_ns=pl.coalesce("to_ns", "last_ns"))
        .drop("last_ns")
    )
