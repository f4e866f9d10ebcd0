"""pending-behind-busy: blocks wait in pending slots while cores that could run them stand idle.

## What it finds
A block in a core's pending slot waits for the one block before it, whatever else becomes free. The
rule adds up, per shape, how many cores (for MIX: whole groups) stood idle while as many blocks of
that shape were pending, and fires when that is more than a share of the cores' time in the steps
that have such blocks.

A scheduler thread needs a pass to see that a core is free, some 0.1 µs per core that it polls and
0.14 µs per block that it dispatches. So a core counts as idle, and a block as pending, only after
`grace_ns`. What little is lost when a core elsewhere frees up early is the price of a pending slot,
which hides the dispatch; below `max_share`, and below `min_lost_ns` of all cores together, which is
about one kernel's time, the rule says nothing.

## Why it hurts
The block's own start is late, and so is everything that depends on it, with cores idle beside it.

## Example
    MIX blocks were pending while core groups stood idle: 2.7% of their time,
    at worst 1 of 8 idle with 3 pending for 9.8 µs (mix 2 3/4 first)

## How to fix
Make a block pending only when no core of the kind, on any scheduler thread, is idle; choose the
core that frees up first; put a MIX back in its queue rather than behind a busy core while a whole
group is free.

## References
Choosing pending slots core by core in the `tensormap_and_ringbuffer` runtime of
hw-native-sys/simpler; work stealing in general.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration
from stepscope.analyzers.rules.cor.idling import MEMBERS, evidence_of, idle_while
from stepscope.analyzers.rules.cor.naming import with_label
from stepscope.analyzers.rules.cor.occupancy import BLOCK, POOL, holds
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.trace import Trace

FIX = (
    "make a block pending only when no core that could run it is idle on any scheduler thread, "
    "and behind the core that frees up first"
)


@dataclass(frozen=True, slots=True)
class PendingBehindBusy:
    """Blocks were pending while cores for them stood idle, for more than a share of their time."""

    code: ClassVar[str] = "COR005"
    name: ClassVar[str] = "pending-behind-busy"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "core_spans.slot",
        "core_spans.dispatch_ns",
        "core_spans.end_ns",
        CLOCK,
    )

    max_share: float = 0.015
    min_lost_ns: int = 10_000
    grace_ns: int = 2_000

    def applies(self, trace: Trace) -> bool:
        """Tell whether times between events were measured: an order alone has no lengths."""
        return trace.manifest.is_measured("core_spans")

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and shape, placed at the worst moment."""
        spans = holds(trace)
        pending = _pending(spans, self.grace_ns)
        lost = idle_while(trace, pending, spans, self.grace_ns).filter(
            pl.col("share") > self.max_share, pl.col("lost_ns") >= self.min_lost_ns
        )
        found = lost.collect().lazy()
        named = with_label(_with_first(found, pending).collect().lazy(), trace)
        rows = named.sort(*POOL).collect()
        return [self._finding(row) for row in rows.iter_rows(named=True)]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        member, lasts_ns = MEMBERS[row["shape"]], row["end_ns"] - row["ts_ns"]
        message = (
            f"{row['shape']} blocks were pending while {member}s stood idle: {row['share']:.1%} of "
            f"their time, at worst {row['num_idle']} of {row['members']} idle with "
            f"{row['num_waiting']} pending for {duration(lasts_ns)} ({row['label']} first)"
        )
        evidence: Evidence = {**evidence_of(row, "pending"), "pending first": row["label"]}
        return finding(self, message, FIX, at=row, evidence=evidence)


def _pending(spans: pl.LazyFrame, grace_ns: int) -> pl.LazyFrame:
    """Blocks with a part in a pending slot, from `grace_ns` after they were put there."""
    since, place = pl.col("dispatch_ns"), ("core", "group")
    mixes = (
        spans.filter(pl.col("shape") == "MIX")
        .group_by(*BLOCK, "shape")
        .agg(
            pl.col(place).min(),
            is_pending=(pl.col("slot") == "pending").any(),
            from_ns=since.min() + grace_ns,
            to_ns=pl.col("ts_ns").max(),
        )
        .filter("is_pending")
        .drop("is_pending")
    )
    # Other blocks have one part, and need no grouping.
    alone = spans.filter(pl.col("shape").is_in(["AIC", "AIV"]), pl.col("slot") == "pending").select(
        *BLOCK, "shape", *place, from_ns=since + grace_ns, to_ns="ts_ns"
    )
    return pl.concat([mixes, alone]).filter(pl.col("from_ns") < pl.col("to_ns"))


def _with_first(lost: pl.LazyFrame, pending: pl.LazyFrame) -> pl.LazyFrame:
    """Add the block that had been pending longest at the worst moment of each pool."""
    was_there = (pl.col("from_ns") <= pl.col("ts_ns")) & (pl.col("ts_ns") < pl.col("to_ns"))
    there = pending.join(lost.select(*POOL, "ts_ns"), on=POOL).filter(was_there)
    first = (
        there.sort("from_ns", "task", "block")
        .group_by(*POOL)
        .agg(pl.col("task", "block", "core", "group").first())
    )
    return lost.join(first, on=POOL, how="left")
