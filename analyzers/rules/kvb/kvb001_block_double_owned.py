"""block-double-owned: a KV block or slot was claimed while another request still had it.

## What it finds
Claims of a block or slot that an earlier claim, share or move had not let go of yet. `share` is the
legal way for two requests to have one block (a prefix cache); a *claim* takes it for writing. Who
lets go and who claims in one moment do not meet, and of a claim and shares of one moment the claim
came first: a prompt that is let in finds what one let in before it, in the same step, has claimed.
What one request took from one other is one finding.

Where rows of `allocations` may be missing, an owner that was never seen to let go proves nothing.

`overlap_ns` is 1: a block that changes its owner is released before or when it is claimed.

## Why it hurts
Both write their keys and values to the same place, and each attends to the other's. Nothing
crashes: two users get plausible text about each other's prompts.

## Example
    req-09 was given 3 KV blocks that req-04 still had: first block 17, for 12.4 ms

## How to fix
Let one place own the free list. Look for a block that is freed twice (and so handed out twice), for
a free on preemption beside the one on finish, and for a reference count that is dropped once too
often when a shared block is copied.

## References
The generation check of slot-recycling schedulers (mlxcel pull request 468); double frees in paged
KV caches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.analyzers.views.ownership import CALLED, TAKES, THING, ownerships
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "let one place own the free list; look for blocks that are freed twice, "
    "and for reference counts dropped once too often"
)
# Of one moment rows have no order: a claim of it comes before the shares of what it claimed.
_IN_ORDER = ("from_ns", "is_shared")


@dataclass(frozen=True, slots=True)
class BlockDoubleOwned:
    """A block or slot was claimed while another request had it."""

    code: ClassVar[str] = "KVB001"
    name: ClassVar[str] = "block-double-owned"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("allocations", CLOCK)

    overlap_ns: int = 1
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether anybody took anything: what a cache can find has no owner by that."""
        return any_row(trace.allocations.filter(pl.col("op").is_in(TAKES)))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per pair of owners and kind of thing, in order of time."""
        first = ("ts_ns", "step", "id", "end_ns")
        pairs = (
            self._doubled(trace)
            .group_by("rank", "resource", "owner", "holder")
            .agg(
                pl.col(first).sort_by(first).first(),
                num_things=pl.col("id").n_unique(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "resource", "owner", "holder")
            .rename({"owner": "request"})
        )
        return each(self, pairs.collect(), self._finding, FIX, self.limit)

    def _doubled(self, trace: Trace) -> pl.LazyFrame:
        owned = ownerships(trace)
        if not trace.manifest.is_whole("allocations"):
            owned = owned.filter(pl.col("to_ns") < FAR_NS)
        owned = self._of_doubtful(owned.collect())
        lasts = pl.col("to_ns") == pl.col("to_ns").cum_max().over(THING)
        holder = [
            pl.when(lasts).then(column).forward_fill().shift(1).over(THING).alias(into)
            for column, into in (("owner", "holder"), ("to_ns", "holder_to_ns"))
        ]
        until_ns = pl.min_horizontal("to_ns", "holder_to_ns")
        return (
            owned.sort(*THING, *_IN_ORDER, "to_ns", "owner")
            .with_columns(holder)
            .filter(
                ~pl.col("is_shared"),
                pl.col("owner") != pl.col("holder"),
                until_ns - pl.col("from_ns") >= self.overlap_ns,
            )
            .with_columns(ts_ns="from_ns", end_ns=pl.when(until_ns < FAR_NS).then(until_ns))
        )

    def _of_doubtful(self, owned: pl.DataFrame) -> pl.LazyFrame:
        """Leave out the things that nobody claimed before the last had let go: nearly all."""
        had_until = pl.col("to_ns").cum_max().shift(1).over("thing")
        is_doubtful = ~pl.col("is_shared") & (had_until - pl.col("from_ns") >= self.overlap_ns)
        spans = owned.lazy().select("is_shared", "from_ns", "to_ns", thing=pl.struct(THING).hash())
        things = spans.sort("thing", *_IN_ORDER).filter(is_doubtful).select("thing").unique()
        return owned.lazy().filter(
            pl.struct(THING).hash().is_in(things.collect()["thing"].implode())
        )

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        what = CALLED.get(row["resource"], row["resource"])
        shared_ns = None if row["end_ns"] is None else row["end_ns"] - row["ts_ns"]
        how_long = "neither let go" if shared_ns is None else f"for {duration(shared_ns)}"
        things = times(row["num_things"], what)
        message = (
            f"{row['request']} was given {things} that {row['holder']} still had: "
            f"first {what.split()[-1]} {row['id']}, {how_long}"
        )
        evidence: Evidence = {
            "holder": row["holder"],
            f"{what}s": row["num_things"],
            "first": row["id"],
            "shared_ns": shared_ns,
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
