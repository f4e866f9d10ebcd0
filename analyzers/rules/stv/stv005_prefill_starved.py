"""prefill-starved: decodes hold the whole budget back, step after step, while prompts wait.

## What it finds
Runs of more than `max_steps` steps in which prompts waited, none was worked on, and what was
reserved for decodes left less than `min_tokens` tokens of the budget for them.

## Why it hurts
Requests that decode keep decoding, so a reserve that takes everything takes everything until one of
them ends. Nobody who arrives gets a first token in the meantime.

## Example
    412 steps running (88 to 499) reserved 2,048 of 2,048 tokens for decodes, with up to 17 requests
    waiting

## How to fix
Bound the reserve well below the budget (`max_num_seqs` times tokens a decode may take, at most a
half of it), or refuse a configuration in which it can reach the budget. Keep at least a chunk for
prompts.

## References
The decode-budget reservation of ATOM's mixed batches:
`min(num_decodes, max_num_seqs) * (mtp_k + 1)`, at most the budget.
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
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.trace import Trace

FIX = "bound what is reserved for decodes below the budget, so that a chunk of a prompt always fits"


@dataclass(frozen=True, slots=True)
class PrefillStarved:
    """The reserve left no budget for prompts in more than `max_steps` steps running."""

    code: ClassVar[str] = "STV005"
    name: ClassVar[str] = "prefill-starved"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "steps.token_budget",
        "steps.reserved_tokens",
        "steps.num_waiting",
        "steps.num_prefill_tokens",
    )

    max_steps: int = 8
    min_tokens: int = 1
    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such runs, placed at the longest."""
        left = pl.col("token_budget") - pl.col("reserved_tokens")
        is_starved = (
            (left < self.min_tokens)
            & (pl.col("num_waiting") > 0)
            & (pl.col("num_prefill_tokens") == 0)
        )
        runs = streaks(
            formed(trace),
            is_starved,
            pl.col("num_waiting", "token_budget", "reserved_tokens").max(),
        ).filter(pl.col("num_steps") > self.max_steps)
        rows = worst_of_each_rank(runs).sort("rank").collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{times(row['num_steps'], 'step')} running ({row['step']} to {row['last_step']}) "
            f"reserved {row['reserved_tokens']:,} of {row['token_budget']:,} tokens for decodes, "
            f"with up to {times(row['num_waiting'], 'request')} waiting"
        )
        evidence: Evidence = {
            "longest run_steps": row["num_steps"],
            "steps": row["all_steps"],
            "reserved_tokens": row["reserved_tokens"],
            "budget_tokens": row["token_budget"],
            "waiting at most": row["num_waiting"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
