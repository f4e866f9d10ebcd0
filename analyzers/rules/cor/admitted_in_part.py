"""MIX blocks of which one part took its core at once while another found its core held.

That is the conflict that COR001 tells, and what led to a block that never ends where hardware does
not queue.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.rules.cor.naming import with_label
from stepscope.analyzers.rules.cor.occupancy import BLOCK, holds, with_holder_named
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

TOLD = ("took", "group", "holder", "held_core_kind")


def admitted_in_part(trace: Trace) -> pl.LazyFrame:
    """One row per such block.

    Columns: rank, task, block, step, group, label; ts_ns (of its dispatch), end_ns (the last part's
    start); took, the kinds of the cores that were free; core, held_core_kind, holder and
    holder_left_ns: the held core whose block ends last, and how long that still took, null where it
    never ended; kinds, starts_ns and held_idle_ns of its parts; first_core, first_holder_task and
    first_holder_block, of the first core that was held; conflict: what it took, and who was in the
    way, in words.
    """
    parts = with_holder_named(holds(trace)).filter(pl.col("shape") == "MIX")
    conflicts = with_label(_conflicts(parts).collect().lazy(), trace)
    named = with_label(conflicts, trace, "held_holder_task", "held_holder_block", "holder")
    told = [pl.col(name).cast(pl.String).fill_null("?") for name in TOLD]
    return named.with_columns(conflict=pl.format("took {} of group {} while {} held {}", *told))


def _conflicts(parts: pl.LazyFrame) -> pl.LazyFrame:
    """The blocks of which one part took its core at once while another found its core held."""
    left_ns = pl.col("holder_end_ns") - pl.col("dispatch_ns")
    held = pl.col("_is_held")
    last_held = held & (left_ns == left_ns.filter(held).max())
    of_holder = pl.col("core", "core_kind", "holder_task", "holder_block").filter(last_held)
    return (
        parts.with_columns(_is_held=(left_ns > 0).fill_null(value=False))
        .with_columns(_at_once=pl.coalesce(pl.col("slot") == "running", ~held))
        .sort(*BLOCK, "core", "ts_ns", "dispatch_ns")
        .group_by(*BLOCK)
        .agg(
            of_holder.first().name.prefix("held_"),
            pl.col("core", "holder_task", "holder_block")
            .filter(held)
            .first()
            .name.prefix("first_"),
            pl.col("step", "group").min(),
            ts_ns=pl.col("dispatch_ns").min(),
            end_ns=pl.col("ts_ns").max(),
            took=_named(pl.col("_at_once") & ~held),
            kinds=pl.col("core_kind"),
            starts_ns=pl.col("ts_ns"),
            held_idle_ns=pl.col("ts_ns").max() - pl.col("ts_ns").min(),
            holder_left_ns=_unless_far(left_ns.filter(held).max()),
            is_conflict=pl.col("_at_once").any() & held.any() & (pl.len() > 1),
        )
        .filter("is_conflict")
        .rename({"held_core": "core"})
    )


def _named(which: pl.Expr) -> pl.Expr:
    kinds = pl.col("core_kind").cast(pl.String).filter(which).str.join(" ")
    return pl.when(kinds != "").then(kinds).otherwise(pl.lit("its cores"))


def _unless_far(time_ns: pl.Expr) -> pl.Expr:
    """Null where a block never ended."""
    return pl.when(time_ns < FAR_NS // 2).then(time_ns)
