"""row-overwritten: what was computed for one sequence was sampled for another.

## What it finds
Reads of a row on behalf of one row of the batch (`segment`) which found what was written there for
another one, later than for the reader or where nothing was written for it at all. Reader and writer
are different streams: a result is handed over. (For scratch that one stream writes and reads see
BUF005; for parts of a split batch BUF002; a read that came too early found *older* contents, see
BUF003.) Such reads of a buffer are one finding.

## Why it hurts
Sequences that are decoded one after the other leave their logits in the same row. Who samples when
all are done gives every sequence the token of the last one: fluent text, and somebody else's.

## Example
    logits was read 45 times for a sequence after another one had written it: first row 0 for
    req-01 in step 2, which held what was computed for req-00

## How to fix
Move each row out of the way before the next one is computed, to a row of its own on the device or
to the host, or sample it at once; or compute all rows together.

## References
Atlas pull request 101: with the clamp to one sequence lifted, every sequence sampled row 0.
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

FIX = "move a row out of the way before the next sequence's is computed, or sample it at once"


@dataclass(frozen=True, slots=True)
class RowOverwritten:
    """A row was read for one sequence after it had been written for another."""

    code: ClassVar[str] = "BUF004"
    name: ClassVar[str] = "row-overwritten"
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
        is_newer = pl.col("own_epoch").is_null() | (pl.col("epoch") > pl.col("own_epoch"))
        overwritten = foreign_reads(trace).filter(
            ~pl.col("is_split"), pl.col("stream") != pl.col("writer_stream"), is_newer
        )
        rows = by_buffer(overwritten, trace).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        place, whose, whom = named(row)
        message = (
            f"{row['buffer']} was read {times(row['count'], 'time')} for a sequence after another "
            f"one had written it: first {place}for {whose} in step {row['step']}, which held what "
            f"was computed for {whom}"
        )
        evidence: Evidence = {
            "buffer": row["buffer"],
            "reads": row["count"],
            "steps": row["num_steps"],
            "written for": row["writer_request"],
            "epoch found": row["epoch"],
            "epoch of its own": row["own_epoch"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
