"""Which slot's bytes were read and written, whose they were, and how old the contents.

A buffer that holds all slots, one after the other, has slot n from byte `n * slot_bytes` on. The
`epoch` of an access numbers the write that its contents come from, over the whole run; a copy is a
read and a write of one epoch.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.declared import slot_bytes
from stepscope.analyzers.views.once import once
from stepscope.analyzers.views.ownership import ownerships
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

SLOT = ("rank", "slot")


def slot_accesses(trace: Trace) -> pl.LazyFrame:
    """Reads and writes of slots, whose numbers are null where no size of a slot is declared.

    Columns: rank, step, ts_ns, buffer, op (read or write), slot, num_bytes, epoch, owner of the
    slot at that time, claim_ns and claim_step (when the owner took it; null where nobody has it).
    An access of several slots counts for the first.
    """
    return once(trace, "slot accesses", lambda: _slot_accesses(trace))


def _slot_accesses(trace: Trace) -> pl.LazyFrame:
    size = pl.lit(slot_bytes(trace), pl.Int64)
    known = [pl.col(name).is_not_null() for name in ("ts_ns", "buffer", "first", "epoch")]
    op = pl.when(pl.col("op") == "copy").then(pl.lit("write")).otherwise("op")
    accesses = (
        trace.accesses.filter(*known, pl.col("op").is_in(["read", "write", "copy"]))
        .select(
            "rank", "step", "buffer", "epoch",
            pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
            op=op,
            slot=pl.col("first") // size,
            num_bytes=(pl.col("last") - pl.col("first")).clip(0, FAR_NS),
        )
    )  # fmt: skip
    return _with_owner(accesses, trace)


def slot_writes(trace: Trace) -> pl.LazyFrame:
    """Those of `slot_accesses` that write, with born_ns: when the contents were first written."""
    written = slot_accesses(trace).filter(pl.col("op") == "write")
    born = written.group_by("rank", "epoch").agg(born_ns=pl.col("ts_ns").min())
    return written.join(born, on=["rank", "epoch"], how="left")


def _with_owner(accesses: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add who has the slot at the time of the access."""
    owned = (
        ownerships(trace)
        .filter(pl.col("resource") == "slot")
        .group_by("rank", pl.col("id").alias("slot"), pl.col("from_ns").alias("claim_ns"))
        .agg(
            pl.col("owner", "to_ns", "step").sort_by("to_ns", "owner").last(),
        )
        .rename({"step": "claim_step"})
        .sort("claim_ns")
    )
    has_it = pl.col("ts_ns") < pl.col("to_ns")
    return (
        accesses.sort("ts_ns")
        .join_asof(
            owned,
            left_on="ts_ns",
            right_on="claim_ns",
            by=list(SLOT),
            check_sortedness=False,
            coalesce=False,
        )
        .with_columns(
            pl.when(has_it).then(column).alias(column)
            for column in ("owner", "claim_ns", "claim_step")
        )
        .drop("to_ns")
    )
