"""mixed-never-forms: prompts took the budget of step after step, and no decode was mixed in.

## What it finds
Runs of more than `max_steps` steps in which prompts alone took at least `min_share` of the token
budget, although requests ran that could have decoded in the very same steps. An engine that
declares that it mixes nothing (`scheduler.mixed` is false) cannot fail to: the rule is not
applicable to it, and how long its decodes wait is for STV004 and STV011 to say.

## Why it hurts
An engine that can mix prefill and decode pays for it in complexity and gets nothing: it runs all
prompts, then all decodes. Whoever gets a first token early stalls until the last prompt is done
(STV004), and the decode steps that follow are memory-bound with compute to spare.

## Example
    494 prefill steps running (4 to 497) took 100% of the budget and left up to 61 decodes out; 2
    mixed steps formed in all

## How to fix
Hold the decodes' tokens back before prompts spend the budget, a token (and its drafts) for each
running request, or schedule what runs before what waits, which comes to the same.

## References
ATOM's mixed batches: 494 prefill, 2 mixed and 500 decode steps without a reserve, mixed steps from
the third on with it; vLLM V1 schedules running requests first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import formed, with_left_out
from stepscope.analyzers.views.declared import mixes
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.trace import Trace

FIX = "reserve a token for each running decode before prompts spend the budget"


@dataclass(frozen=True, slots=True)
class MixedNeverForms:
    """Prompts took `min_share` of the budget in `max_steps` steps running and decodes were left."""

    code: ClassVar[str] = "BAT001"
    name: ClassVar[str] = "mixed-never-forms"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "steps.token_budget",
        "steps.num_running",
        "steps.num_prefill_reqs",
        "steps.num_decode_reqs",
        "steps.num_prefill_tokens",
    )

    max_steps: int = 4
    min_share: float = 0.8
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether the engine may mix, as far as it says."""
        return mixes(trace) is not False

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such runs, placed at the longest."""
        steps = with_left_out(formed(trace), trace)
        share = pl.col("num_prefill_tokens") / pl.col("token_budget")
        is_full = (
            (share >= self.min_share)
            & (pl.col("token_budget") > 0)
            & (pl.col("num_decode_reqs") == 0)
            & (pl.col("num_left_out") > 0)
        )
        runs = streaks(
            steps.with_columns(share=share), is_full, pl.col("num_left_out").max(),
            share=pl.col("share").mean(),
        ).filter(pl.col("num_steps") > self.max_steps)  # fmt: skip
        num_mixed = steps.group_by("rank").agg(num_mixed=(pl.col("kind") == "mixed").sum())
        worst = worst_of_each_rank(runs).join(num_mixed, on="rank", how="left")
        return each(self, worst.sort("rank").collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{times(row['num_steps'], 'prefill step')} running ({row['step']} to "
            f"{row['last_step']}) took {row['share']:.0%} of the budget and left up to "
            f"{times(row['num_left_out'], 'decode')} out; "
            f"{times(row['num_mixed'], 'mixed step')} formed in all"
        )
        evidence: Evidence = {
            "longest run_steps": row["num_steps"],
            "steps": row["all_steps"],
            "decodes left out at most": row["num_left_out"],
            "budget_share": round(row["share"], 4),
            "mixed steps in all": row["num_mixed"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
