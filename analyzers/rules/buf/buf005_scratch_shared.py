"""scratch-shared: two sequences used the same scratch at the same time.

## What it finds
Reads of scratch, which one stream writes and reads itself, on behalf of one row of the batch
(`segment`) which found what had been written there for another one since the reader's own write:
the lifetimes of the two overlap. Such reads of a buffer are one finding.

## Why it hurts
What a kernel leaves in scratch for the next one is gone when another sequence writes there in
between. All sequences compute on what the last one left. Nothing crashes, one sequence alone is
right, and two together are wrong.

## Example
    moe-scratch was shared: 45 reads found what another sequence had written since, first row 0 for
    req-00 in step 2, overwritten for req-03

## How to fix
Give each row of the batch scratch of its own, sized by the widest batch; or let the second sequence
begin only when the first one has read what it left.

## References
Atlas pull request 101: scratch sized for one sequence behind a clamp that is lifted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.buf.segment_reads import (
    by_buffer,
    foreign_reads,
    have_company,
    named,
)
from stepscope.ingest.trace import Trace

FIX = "give each row of the batch scratch of its own, sized by the widest batch"


@dataclass(frozen=True, slots=True)
class ScratchShared:
    """A sequence read scratch that another one had written since its own write."""

    code: ClassVar[str] = "BUF005"
    name: ClassVar[str] = "scratch-shared"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "accesses.step",
        "accesses.buffer",
        "accesses.segment",
        "accesses.epoch",
    )

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether two sequences were in one step, each with accesses of its own."""
        return have_company(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per buffer, with the number of such reads, in order of time."""
        shared = foreign_reads(trace).filter(
            ~pl.col("is_split"),
            pl.col("stream") == pl.col("writer_stream"),
            pl.col("epoch") > pl.col("own_epoch"),
        )
        rows = by_buffer(shared, trace).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        place, whose, whom = named(row)
        message = (
            f"{row['buffer']} was shared: {times(row['count'], 'read')} found what another "
            f"sequence had written since, first {place}for {whose} in step {row['step']}, "
            f"overwritten for {whom}"
        )
        evidence: Evidence = {
            "buffer": row["buffer"],
            "reads": row["count"],
            "rows of the batch": row["num_sequences"],
            "overwritten for": row["writer_request"],
            "epoch found": row["epoch"],
            "epoch of its own": row["own_epoch"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
