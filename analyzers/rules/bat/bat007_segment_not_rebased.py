"""segment-not-rebased: a segment's cumulative lengths do not start at 0, or do not add up.

## What it finds
Segments whose first cumulative length is not 0, or whose last one is not the number of tokens in
the segment. Segments of one phase are one finding.

## Why it hurts
A kernel takes cumulative lengths as offsets into the tensor that it is given. Of a slice that
starts behind the prompts, offsets of the whole batch point past its end: it reads and writes out of
bounds, and a GPU says so steps later, if at all.

## Example
    19 decode segments have cumulative lengths that do not start at 0: first segment 1 of step 4,
    from 1,934 to 2,048 for 114 tokens

## How to fix
Subtract the first length when a batch is cut, or build each segment's lengths from its own rows.
Assert `cu_lens[0] == 0` and `cu_lens[-1] == num_tokens` where a segment is run.

## References
ATOM's mixed batches: `prepare_decode` read the whole batch's `cu_seqlens_q`; an illegal memory
access in `swa_write`.
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

FIX = (
    "subtract the first length when a batch is cut, and assert that lengths go from 0 to num_tokens"
)


@dataclass(frozen=True, slots=True)
class SegmentNotRebased:
    """A segment's cumulative lengths are not those of its own tokens."""

    code: ClassVar[str] = "BAT007"
    name: ClassVar[str] = "segment-not-rebased"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("segments",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known a cumulative length."""
        return any(knows(trace, f"segments.{name}") for name in ("first_cu_len", "last_cu_len"))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, phase and what is wrong, placed at the first segment."""
        first = ("ts_ns", "step", "segment", "first_cu_len", "last_cu_len", "num_tokens")
        starts, ends = pl.col("first_cu_len") == 0, pl.col("last_cu_len") == pl.col("num_tokens")
        wrong = (
            trace.segments.filter(~starts.fill_null(value=True) | ~ends.fill_null(value=True))
            .with_columns(is_shifted=~starts.fill_null(value=True))
            .group_by("rank", "phase", "is_shifted")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "phase", "is_shifted")
        )
        return each(self, wrong.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        what = "start at 0" if row["is_shifted"] else "add up"
        lengths = [_length(row[name]) for name in ("first_cu_len", "last_cu_len")]
        has = "have" if row["count"] > 1 else "has"
        message = (
            f"{times(row['count'], (row['phase'] or 'unknown') + ' segment')} {has} cumulative "
            f"lengths that do not {what}: first segment {row['segment']} of step {row['step']}, "
            f"from {lengths[0]} to {lengths[1]} for {_length(row['num_tokens'])} tokens"
        )
        evidence: Evidence = {
            "segments": row["count"],
            "phase": row["phase"],
            "first length_tokens": row["first_cu_len"],
            "last length_tokens": row["last_cu_len"],
            "segment_tokens": row["num_tokens"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _length(tokens: int | None) -> str:
    return "?" if tokens is None else f"{tokens:,}"
