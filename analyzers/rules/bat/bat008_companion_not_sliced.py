"""companion-not-sliced: a per-token field of a segment is not as long as the segment.

## What it finds
Segments of which `input_ids`, `positions` or `slot_mapping` has another length than the segment has
tokens. Each field and phase is one finding. A field that is missing is BAT009.

## Why it hurts
Fields of a batch are read side by side, by index. When one of them is still that of the whole
batch, row i of the segment is computed with row i of the batch: decodes with the prompts' token
ids, positions or slots. Shapes that happen to be broadcast hide it.

## Example
    input_ids is not cut to the segment in 19 decode segments: first segment 1 of step 4, 2,048
    long for 114 tokens

## How to fix
Cut every per-token field at the same token, in one place that knows all of them, and restore all of
them after. Assert the lengths where the segment is run.

## References
ATOM's mixed batches: `ctx.input_ids` was left whole while each segment re-entered the forward pass,
and hash routing of experts read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.known import knows
from stepscope.ingest.trace import Trace

FIX = "cut every per-token field at the same token in one place, and assert their lengths"
FIELDS = ("input_ids", "positions", "slot_mapping")


@dataclass(frozen=True, slots=True)
class CompanionNotSliced:
    """A per-token field has another length than its segment."""

    code: ClassVar[str] = "BAT008"
    name: ClassVar[str] = "companion-not-sliced"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("segments",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known how long any field is."""
        return any(knows(trace, f"segments.{name}_len") for name in FIELDS)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, field and phase, placed at the first segment."""
        first = ("ts_ns", "step", "segment", "length", "num_tokens")
        of_field = [
            trace.segments.with_columns(field=pl.lit(name), length=f"{name}_len").filter(
                pl.col("length") != pl.col("num_tokens")
            )
            for name in FIELDS
        ]
        wrong = (
            pl.concat(of_field)
            .group_by("rank", "field", "phase")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "field", "phase")
        )
        return each(self, wrong.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        segments = times(row["count"], (row["phase"] or "unknown") + " segment")
        message = (
            f"{row['field']} is not cut to the segment in {segments}: first segment "
            f"{row['segment']} of step {row['step']}, {row['length']:,} long for "
            f"{times(row['num_tokens'], 'token')}"
        )
        evidence: Evidence = {
            "field": row["field"],
            "segments": row["count"],
            "phase": row["phase"],
            "length_tokens": row["length"],
            "segment_tokens": row["num_tokens"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
