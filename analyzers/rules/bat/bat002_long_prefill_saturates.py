"""long-prefill-saturates: one prompt took nearly a whole step's budget while decodes waited.

## What it finds
Steps in which one request's chunk of a prompt was at least `min_share` of the token budget, and
requests that could have decoded in the step were left out. All of a rank are one finding, which
names the request with the longest chunk. An engine that declares that it mixes nothing
(`scheduler.mixed` is false) leaves them out whatever a chunk takes: the rule is not applicable to
it, and how long its decodes wait is for STV004 and STV011 to say.

## Why it hurts
One user's long document sets the pace of everybody's output: each step of it lasts as long as the
budget allows, and has room for nobody else.

## Example
    a chunk of one prompt took up to 100% of the budget in 312 steps and left up to 114 decodes out:
    first req-12, 2,048 of 2,048 tokens in step 9

## How to fix
Cap the tokens that one request may have prefilled in a step (vLLM's and ATOM's
`long_prefill_token_threshold`, 1,792 of 2,048), and keep a reserve for decodes.

## References
The long-prefill threshold of ATOM's mixed batches: without it 2,048 requests of 8,192 tokens filled
every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import STEP, formed, rows, with_left_out
from stepscope.analyzers.views.declared import mixes
from stepscope.ingest.trace import Trace

FIX = "cap the tokens that one request may have prefilled in a step, and reserve some for decodes"


@dataclass(frozen=True, slots=True)
class LongPrefillSaturates:
    """A chunk of one prompt was `min_share` of the budget in a step that left decodes out."""

    code: ClassVar[str] = "BAT002"
    name: ClassVar[str] = "long-prefill-saturates"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "batch_rows",
        "steps.token_budget",
        "steps.num_running",
        "steps.num_prefill_reqs",
        "steps.num_decode_reqs",
    )

    min_share: float = 0.9
    at_least: int = 2
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether the engine may mix, as far as it says."""
        return mixes(trace) is not False

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such steps, placed at the first."""
        longest = ("num_tokens", "request")
        chunks = (
            rows(trace)
            .filter(pl.col("phase") == "prefill")
            .group_by(STEP)
            .agg(pl.col(longest).sort_by(longest, descending=[True, False]).first())
            .rename({"num_tokens": "chunk"})
        )
        share = pl.col("chunk") / pl.col("token_budget")
        first = ("ts_ns", "step", "request", "chunk", "token_budget")
        saturated = (
            with_left_out(formed(trace), trace)
            .join(chunks, on=STEP, how="left")
            .with_columns(share=share)
            .filter(
                pl.col("token_budget") > 0,
                pl.col("share") >= self.min_share,
                pl.col("num_left_out") > 0,
            )
            .group_by("rank")
            .agg(
                pl.col(first).sort_by(first).first(),
                pl.col("end_ns", "share", "num_left_out").max(),
                num_requests=pl.col("request").n_unique(),
                count=pl.len(),
            )
            .filter(pl.col("count") >= self.at_least)
        )
        return each(self, saturated.sort("rank").collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"a chunk of one prompt took up to {row['share']:.0%} of the budget in "
            f"{times(row['count'], 'step')} and left up to {times(row['num_left_out'], 'decode')} "
            f"out: first {row['request']}, {row['chunk']:,} of {row['token_budget']:,} tokens in "
            f"step {row['step']}"
        )
        evidence: Evidence = {
            "steps": row["count"],
            "requests": row["num_requests"],
            "chunk_tokens": row["chunk"],
            "budget_tokens": row["token_budget"],
            "budget_share at most": round(row["share"], 4),
            "decodes left out at most": row["num_left_out"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
