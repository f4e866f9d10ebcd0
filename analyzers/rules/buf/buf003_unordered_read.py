"""unordered-read: a stream read what another stream writes, and nothing makes it wait for that.

## What it finds
Reads and copies whose buffer another stream was given to write before, with no event between the
two: no chain of `record` and `wait` (or `synchronize`) leads from behind the write to before the
read. That is told by recorded events and the order of each stream, never by times. What the stream
`host` did before it issued something is before that. Of each read, the last write to the buffer is
looked at, and the last one to the place where the read begins. Reads of a buffer are one finding
for each pair of streams.

Where blocks are recorded, what cores read in each other's local memory is left to COR013, which
knows whose tile it was: cores that share a memory are no queues that an event could be put into.

`found older contents` counts the reads that are known to have come too early.

## Why it hurts
The read takes whatever is there when it runs: often what is meant, now and then what was there
before. A copy of logits on a stream of its own samples the tokens of the sequence before. It comes
and goes with load, and any probe that synchronises hides it.

## Example
    copy read logits 45 times without waiting for compute, which writes it: first in step 2, 5.0 ms
    after the write was issued; 45 reads found older contents

## How to fix
Record an event behind the write and let the reading stream wait for it, or read on the stream that
writes.

## References
Atlas pull request 101: device-to-host copies of logits ran on another stream than the kernels that
compute them. CUDA's `cudaStreamWaitEvent`; Lamport's happens-before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.rules.buf.ordering import names_events, touches, unordered
from stepscope.analyzers.rules.buf.segment_reads import with_requests
from stepscope.analyzers.views.core_memory import is_core_memory
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.trace import Trace

FIX = "record an event behind the write and let the reading stream wait for it"


@dataclass(frozen=True, slots=True)
class UnorderedRead:
    """A read on one stream of a write on another, with no event between."""

    code: ClassVar[str] = "BUF003"
    name: ClassVar[str] = "unordered-read"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("accesses.buffer", CLOCK)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether there are accesses that COR013 does not judge, and events are named."""
        return names_events(trace) and any_row(_of_streams(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per buffer and pair of streams, with the number of reads, by time."""
        accesses = _of_streams(trace)
        reads = accesses.filter(~pl.col("is_write"))
        raced = unordered(reads, accesses.filter("is_write"), "backward", trace)
        first = ("ts_ns", "step", "segment", "epoch", "other_epoch", "other_ts_ns")
        grouped = (
            raced.with_columns(is_older=pl.col("epoch") < pl.col("other_epoch"))
            .group_by("rank", "buffer", "stream", "other_stream")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_older=pl.col("is_older").sum(),
                count=pl.len(),
            )
            .with_columns(writer=pl.lit(None, pl.Int32))
        )
        named = with_requests(grouped, trace).sort("ts_ns", "rank", "buffer", "stream")
        return each(self, named.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        after_ns = row["ts_ns"] - row["other_ts_ns"]
        older = f"; {times(row['num_older'], 'read')} found older contents"
        message = (
            f"{row['stream']} read {row['buffer']} {times(row['count'], 'time')} without waiting "
            f"for {row['other_stream']}, which writes it: first in step {row['step']}, "
            f"{duration(after_ns)} after the write was issued{older if row['num_older'] else ''}"
        )
        evidence: Evidence = {
            "buffer": row["buffer"],
            "read by": row["stream"],
            "written by": row["other_stream"],
            "reads": row["count"],
            "found older contents": row["num_older"],
            "first_after_ns": after_ns,
            "epoch found": row["epoch"],
            "epoch written": row["other_epoch"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _of_streams(trace: Trace) -> pl.LazyFrame:
    """Reads and writes, but for those of cores of which it is known what they executed."""
    accesses = touches(trace)
    return accesses.filter(~is_core_memory()) if trace.has("core_spans") else accesses
