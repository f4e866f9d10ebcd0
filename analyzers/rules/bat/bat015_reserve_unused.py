"""reserve-unused: far more of the budget is reserved for decodes than they take.

## What it finds
At least `min_steps` steps that reserved at least `min_ratio` times the tokens that the decodes of
the batch took, while prompts used all of the remaining budget, or waited because none remained. The
unused tokens must be at least `min_unused` of the budget of these steps, and these steps at least
`min_share` of those in which the reserve limited prompts: an engine that preempts a decode after it
reserved tokens for it leaves a few unused now and then.

## Why it hurts
Reserved tokens that no decode takes are wasted: batches are smaller than they could be, prompts
take more steps, and every request queued after them gets its first token later. The device does not
look idle, so no other figure shows it.

## Example
    in 38 of 40 steps in which the reserve limited prompts, up to 256 tokens were reserved for
    decodes that took 9.9 on average: 9,352 tokens stayed unused, 12% of the budget; worst step 4,
    which reserved 256 for 1

## How to fix
In every step, reserve what the decodes in flight will take, `min(num_decodes, max_num_seqs) *
(mtp_k + 1)`, not what `max_num_seqs` decodes could take. Once the decodes are scheduled, give the
unused part of the reserve to prompts.

## References
The decode-budget reservation of ATOM's mixed batches, which counts the decodes of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import formed
from stepscope.ingest.trace import Trace

FIX = "reserve what the decodes of the step will take, not what max_num_seqs of them could"


@dataclass(frozen=True, slots=True)
class ReserveUnused:
    """In `min_steps` steps the reserve was `min_ratio` times what decodes took."""

    code: ClassVar[str] = "BAT015"
    name: ClassVar[str] = "reserve-unused"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "steps.token_budget",
        "steps.reserved_tokens",
        "steps.num_prefill_tokens",
        "steps.num_decode_tokens",
    )

    min_ratio: float = 2.0
    min_unused: float = 0.01
    min_steps: int = 8
    min_share: float = 0.5
    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, placed at the step that left most unused."""
        reserved, decodes = pl.col("reserved_tokens"), pl.col("num_decode_tokens")
        left = pl.col("token_budget") - reserved
        prompts = pl.col("num_prefill_tokens")
        has_waiting = (pl.col("num_waiting") > 0).fill_null(value=False)
        is_bound = (prompts >= left) & ((prompts > 0) | has_waiting)
        is_unused = reserved >= self.min_ratio * decodes
        worst = ("unused", "ts_ns", "step", "reserved_tokens", "num_decode_tokens")
        rows = (
            formed(trace)
            .filter(reserved > 0, is_bound)
            .with_columns(unused=reserved - decodes, num_bound=pl.len().over("rank"))
            .filter(is_unused)
            .group_by("rank")
            .agg(
                pl.col(worst).sort_by("unused", -pl.col("ts_ns"), "step").last(),
                first_ns=pl.col("ts_ns").min(), end_ns=pl.col("end_ns").max(),
                all_unused=pl.col("unused").sum(), budget=pl.col("token_budget").sum(),
                usual=decodes.mean(), most=reserved.max(), num_bound=pl.col("num_bound").first(),
                count=pl.len(),
            )
            .filter(
                pl.col("count") >= self.min_steps,
                pl.col("count") >= self.min_share * pl.col("num_bound"),
                pl.col("all_unused") >= self.min_unused * pl.col("budget"),
            )
            .sort("rank")
        )  # fmt: skip
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        share = row["all_unused"] / max(1, row["budget"])
        message = (
            f"in {row['count']:,} of {times(row['num_bound'], 'step')} in which the reserve "
            f"limited prompts, up to {times(row['most'], 'token')} were reserved for decodes that "
            f"took {row['usual']:,.1f} on average: {times(row['all_unused'], 'token')} stayed "
            f"unused, {share:.0%} of the budget; worst step {row['step']}, which reserved "
            f"{row['reserved_tokens']:,} for {row['num_decode_tokens']:,}"
        )
        evidence: Evidence = {
            "steps": row["count"],
            "reserved_tokens": row["most"],
            "decode_tokens on average": round(row["usual"], 1),
            "unused_tokens": row["all_unused"],
            "unused_share": round(share, 4),
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
