"""metadata-missing: a field that a batch needs is not there, in some batches only.

## What it finds
Segments in which a field is null (`cu_lens`, `input_ids`, `positions`, `slot_mapping`) that other
segments of the trace have. A field that no segment has is not recorded at all, and says nothing.
Each field and phase is one finding.

## Why it hurts
Code that is shared by all kinds of batch reads fields that only some of the builders fill in. It
works for months, until the first batch of the rarer kind forms, under load.

## Example
    slot_mapping is missing in 19 decode segments: first segment 1 of step 4, though 212 segments
    have it

## How to fix
Let one builder fill the metadata of every kind of batch, with no optional fields, or check at the
end of each builder that all of them are set. Form one batch of each kind in the tests.

## References
ATOM's mixed batches: `cu_seqlens_q` was None in the merged metadata, and the first mixed batch
raised in `ParallelLMHead`.
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

FIX = "fill every field in one builder for all kinds of batch, and form each kind in the tests"
COLUMN_OF = {
    "cu_lens": "last_cu_len",
    "input_ids": "input_ids_len",
    "positions": "positions_len",
    "slot_mapping": "slot_mapping_len",
}


@dataclass(frozen=True, slots=True)
class MetadataMissing:
    """A segment lacks a field that other segments have."""

    code: ClassVar[str] = "BAT009"
    name: ClassVar[str] = "metadata-missing"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("segments",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known any field of a segment."""
        return any(knows(trace, f"segments.{column}") for column in COLUMN_OF.values())

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, field and phase, placed at the first segment."""
        first = ("ts_ns", "step", "segment")
        of_field = [
            trace.segments.with_columns(
                field=pl.lit(name), num_with=pl.col(column).count().over("rank")
            ).filter(pl.col(column).is_null(), pl.col("num_with") > 0)
            for name, column in COLUMN_OF.items()
        ]
        missing = (
            pl.concat(of_field)
            .group_by("rank", "field", "phase")
            .agg(
                pl.col(first).sort_by(first).first(),
                pl.col("num_with").max(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "field", "phase")
        )
        return each(self, missing.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        has = "have" if row["num_with"] > 1 else "has"
        message = (
            f"{row['field']} is missing in "
            f"{times(row['count'], (row['phase'] or 'unknown') + ' segment')}: first segment "
            f"{row['segment']} of step {row['step']}, though {times(row['num_with'], 'segment')} "
            f"{has} it"
        )
        evidence: Evidence = {
            "field": row["field"],
            "phase": row["phase"],
            "segments without": row["count"],
            "segments with": row["num_with"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
