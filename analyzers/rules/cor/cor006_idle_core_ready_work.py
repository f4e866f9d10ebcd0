"""idle-core-ready-work: cores stand idle while blocks that could run on them are ready.

## What it finds
Per shape, how many cores (for MIX: whole groups) stood idle while as many blocks of that shape were
ready and not yet dispatched, added up over time. The rule fires when that is more than a share of
the cores' time in the steps that have such blocks.

Every scheduler loses some: a thread polls each busy core at some 0.1 µs, completes a task in 0.6 µs
and dispatches a block in 0.14 µs, one after another. So a core counts as idle, and a block as
ready, only after `grace_ns`: that is one pass over the cores of a thread. What a policy holds back
counts when a core is free for it; a MIX counts only against groups of which every core is free, and
a task whose blocks must start all together counts not at all.

## Why it hurts
It is lost time of the accelerator, in a unit that is easy to compare: a share of all its cores.

## Example
    AIV cores stood idle for 31.0% of their time with AIV blocks ready:
    at worst 5 of 16 idle with 12 blocks for 4.2 µs

## How to fix
Look at the worst moment for what held the ready blocks back: a MIX that was left over and stops
vector dispatch for a pass, a group reserved by a block that needs one core of it, a drain before
each MIX, or a scheduler thread that is busy dispatching elsewhere (then add threads, or let them
take each other's ready work).

## References
Reserving whole groups and draining vector work as alternatives to an occupancy guard in the
`tensormap_and_ringbuffer` runtime of hw-native-sys/simpler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration
from stepscope.analyzers.rules.cor.idling import MEMBERS, evidence_of, idle_while
from stepscope.analyzers.rules.cor.occupancy import BLOCK, POOL, holds
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.trace import Trace

FIX = (
    "see at the worst moment what held the ready blocks back: a reservation wider than the block, "
    "a drain, a MIX left over, or a scheduler thread too busy to dispatch"
)


@dataclass(frozen=True, slots=True)
class IdleCoreReadyWork:
    """Cores stood idle with blocks ready for them, for more than `max_share` of their time."""

    code: ClassVar[str] = "COR006"
    name: ClassVar[str] = "idle-core-ready-work"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "core_spans.ready_ns",
        "core_spans.dispatch_ns",
        "core_spans.end_ns",
        CLOCK,
    )

    max_share: float = 0.15
    grace_ns: int = 2_000

    def applies(self, trace: Trace) -> bool:
        """Tell whether times between events were measured: an order alone has no lengths."""
        return trace.manifest.is_measured("core_spans")

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and shape, placed at the worst moment."""
        spans = holds(trace)
        ready = _ready(spans, trace, self.grace_ns)
        lost = idle_while(trace, ready, spans, self.grace_ns).filter(
            pl.col("share") > self.max_share
        )
        return [self._finding(row) for row in lost.sort(*POOL).collect().iter_rows(named=True)]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        member, lasts_ns = MEMBERS[row["shape"]], row["end_ns"] - row["ts_ns"]
        message = (
            f"{member}s stood idle for {row['share']:.1%} of their time with {row['shape']} blocks "
            f"ready: at worst {row['num_idle']} of {row['members']} idle with "
            f"{row['num_waiting']} ready for {duration(lasts_ns)}"
        )
        return finding(self, message, FIX, at=row, evidence=evidence_of(row, "ready"))


def _ready(spans: pl.LazyFrame, trace: Trace, grace_ns: int) -> pl.LazyFrame:
    """Blocks from `grace_ns` after they were ready to their dispatch."""
    together = trace.tasks.filter("is_sync_start").select("rank", "task")
    free = spans.join(together, on=["rank", "task"], how="anti")
    since = pl.col("ready_ns") + grace_ns
    mixes = (
        free.filter(pl.col("shape") == "MIX")
        .group_by(*BLOCK, "shape")
        .agg(from_ns=since.min(), to_ns=pl.col("dispatch_ns").min())
    )
    # Other blocks have one part, and need no grouping.
    alone = free.filter(pl.col("shape").is_in(["AIC", "AIV"])).select(
        *BLOCK, "shape", from_ns=since, to_ns="dispatch_ns"
    )
    return pl.concat([mixes, alone]).filter(pl.col("from_ns") < pl.col("to_ns"))
