"""shared-view-clobbered: a segment read what another segment of its step had written.

## What it finds
Reads of a buffer by a segment whose contents (`epoch`) another segment of the same step wrote to
that buffer, and the reader did not. Only steps that run in segments count (`segments` has rows for
them). Reads of a buffer by segments of one phase are one finding.

## Why it hurts
The metadata of a batch lie in buffers that every step reuses. A mixed batch prepares them twice,
and a segment that keeps a view of them, not a copy, runs with the numbers of the one prepared last:
rows of the decode under the shapes of the prefill. The result is wrong, or an index lies outside of
its buffer.

## Example
    prefill segments read shared slot_mapping 46 times as another segment had left it: first segment
    0 in step 4, which found what segment 1 had written

## How to fix
Clone what a segment keeps before the next one is prepared, with everything that hangs from it
(plans, index tables, cumulative lengths), or give each segment buffers of its own.

## References
ATOM pull request 1271: `compress_plans` were views into shared buffers which `prepare_decode`
overwrites; `cu_seqlens_q` of the whole batch was left to the decode half.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.buf.segment_reads import STEP, foreign_reads, is_ever_split
from stepscope.ingest.trace import Trace

FIX = "clone what a segment keeps before the next is prepared, or give each its own buffers"


@dataclass(frozen=True, slots=True)
class SharedViewClobbered:
    """A segment read contents that another segment of its step wrote."""

    code: ClassVar[str] = "BUF002"
    name: ClassVar[str] = "shared-view-clobbered"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "accesses.step",
        "accesses.buffer",
        "accesses.segment",
        "accesses.epoch",
        "segments",
    )

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether two segments of one step used a buffer."""
        return is_ever_split(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per buffer and phase, with the number of such reads, in order of time."""
        phases = trace.segments.group_by(*STEP, "segment").agg(pl.col("phase").min())
        first = ("ts_ns", "step", "segment", "writer", "epoch", "own_epoch", "first", "last")
        clobbered = (
            foreign_reads(trace)
            .filter("is_split")
            .join(phases, on=[*STEP, "segment"], how="left")
            .group_by("rank", "buffer", "phase")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_steps=pl.col("step").n_unique(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "buffer", "phase")
        )
        return each(self, clobbered.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        whose = "segments" if row["phase"] is None else f"{row['phase']} segments"
        message = (
            f"{whose} read {row['buffer']} {times(row['count'], 'time')} as another segment had "
            f"left it: first segment {row['segment']} in step {row['step']}, which found what "
            f"segment {row['writer']} had written"
        )
        evidence: Evidence = {
            "buffer": row["buffer"],
            "reads": row["count"],
            "steps": row["num_steps"],
            "first": row["first"],
            "last": row["last"],
            "epoch found": row["epoch"],
            "epoch of its own": row["own_epoch"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
