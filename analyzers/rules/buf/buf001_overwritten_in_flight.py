"""overwritten-in-flight: the host wrote to a buffer that may still have been copied from.

## What it finds
Writes by the stream `host` to a buffer that another stream was given to read or copy before, where
nothing that the host waited for comes after that read. What comes after what is told by recorded
events alone (`record`, `wait`, `synchronize`) and by the order of each stream, never by times: the
copy may well have been over by then, in this run. Of each read, the next write of the host to the
buffer is looked at, and the next to the place where the read begins. Writes to a buffer are one
finding for each stream that they race with.

`took the new contents` counts the reads that are known to have found what was written after them.

## Why it hurts
An asynchronous copy reads host memory when its turn comes. What is written before that is what
arrives: metadata of the next segment under the shapes of this one, indexes out of range, a fault in
a kernel that did nothing wrong. With short prompts the copies have drained in time and nothing is
seen; behind a long one they have not. A probe that synchronises makes it go away.

## Example
    the host wrote pinned slot_mapping 46 times while copy may still have been reading it: first in
    step 4, 28 ns after the read was issued; 44 reads took the new contents

## How to fix
Let the host wait for an event recorded behind the copy before it writes again, give each segment a
pinned buffer of its own, or keep a ring of them.

## References
ATOM pull request 1271: the prefill's copies are drained before the decode half reuses the pinned
buffers. CUDA's `cudaMemcpyAsync` from pinned memory; Lamport's happens-before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.rules.buf.ordering import HOST, names_events, touches, unordered
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.trace import Trace

FIX = (
    "wait for an event recorded behind the copy before the host writes again, "
    "or give each segment a pinned buffer of its own"
)


@dataclass(frozen=True, slots=True)
class OverwrittenInFlight:
    """The host wrote to a buffer, and nothing orders that behind an earlier read of it."""

    code: ClassVar[str] = "BUF001"
    name: ClassVar[str] = "overwritten-in-flight"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("accesses.buffer", CLOCK)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether the events that order streams are named."""
        return names_events(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per buffer and stream, with the number of reads that race, by time."""
        accesses = touches(trace)
        reads = accesses.filter(~pl.col("is_write"), pl.col("stream") != HOST)
        writes = accesses.filter("is_write", pl.col("stream") == HOST)
        first = ("ts_ns", "step", "read_ns", "epoch", "written")
        raced = (
            unordered(reads, writes, "forward", trace)
            .with_columns(
                pl.col("other_step").alias("step"),
                ts_ns="other_ts_ns",
                read_ns="ts_ns",
                written="other_epoch",
                is_taken=pl.col("epoch") >= pl.col("other_epoch"),
            )
            .group_by("rank", "buffer", "stream")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_taken=pl.col("is_taken").sum(),
                num_writes=pl.struct("ts_ns", "written").n_unique(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "buffer", "stream")
        )
        return each(self, raced.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        after_ns = row["ts_ns"] - row["read_ns"]
        taken = f"; {times(row['num_taken'], 'read')} took the new contents"
        message = (
            f"the host wrote {row['buffer']} {times(row['num_writes'], 'time')} while "
            f"{row['stream']} may still have been reading it: first in step {row['step']}, "
            f"{duration(after_ns)} after the read was issued{taken if row['num_taken'] else ''}"
        )
        evidence: Evidence = {
            "buffer": row["buffer"],
            "read by": row["stream"],
            "writes": row["num_writes"],
            "reads not waited for": row["count"],
            "took the new contents": row["num_taken"],
            "first_after_ns": after_ns,
            "epoch read": row["epoch"],
            "epoch written": row["written"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["num_writes"])
