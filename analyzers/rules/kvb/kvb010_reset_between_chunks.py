"""reset-between-chunks: a request began again from an earlier position and was never preempted.

## What it finds
Requests with a batch row that begins at least `min_tokens` before the end of their previous row,
although they were not preempted in between. All tokens count that they compute again, up to the
position that they had reached. All such requests of a rank are one finding, placed at the request
that recomputed most. It names the worst five and says how often each went back.

A smaller step back is not a reset: engines go back to the start of a block of 16 tokens, and
compute the tokens after a rejected draft again.

The rule needs a recording in which no batch row and no request event is missing, and batch rows
that have the position at which they begin.

## Why it hurts
The tokens of a chunk are computed and thrown away, although memory was not short: the scheduler
lost count of what was computed. The prompt takes twice the steps or never ends, blocks are
allocated twice, and preemption counters stay at 0, so no other figure shows it.

## Example
    2 requests computed 12,288 tokens again and were not preempted: req-07 (8,192 again, 2 times,
    first back from 4,096 to 0 in step 14), req-09 (4,096 again, 1 time, first back from 4,096 to 0
    in step 16)

## How to fix
Find the code that changes the request's number of computed tokens between two of its chunks. Usual
causes: a flag of one chunk is taken for a flag of the request, the prefix cache is looked up again
for a running request, KV from another machine failed to load, or a running request is requeued as
if it were new. Less load or more KV blocks do not help.

## References
vLLM 52520; sglang-jax issue 1496 (a prompt that continues loses its prefix after each chunk: 294
prefills where 173 were enough).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.kvb.recomputed import LEAST_RESET, recomputed
from stepscope.analyzers.views.requests import REQUEST
from stepscope.ingest.trace import Trace

FIX = (
    "find what changes the request's number of computed tokens between two of its chunks: it was "
    "not preempted, so more KV blocks or fewer requests do not help"
)
NAMED = 5


@dataclass(frozen=True, slots=True)
class ResetBetweenChunks:
    """A request went back by `min_tokens` or more without a preemption."""

    code: ClassVar[str] = "KVB010"
    name: ClassVar[str] = "reset-between-chunks"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("batch_rows.num_computed", "lifecycle.request")

    min_tokens: int = LEAST_RESET
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether no batch row and no preemption can be missing."""
        return trace.manifest.is_whole("batch_rows", "lifecycle")

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of requests that were reset."""
        is_reset = (pl.col("back") >= self.min_tokens) & ~pl.col("is_preempted")
        again = pl.col("again").filter(~pl.col("is_preempted").fill_null(value=True))
        at = ("step", "ts_ns", "num_computed", "back")
        worst = ("again", "num_resets", "request", *at)
        reset = (
            recomputed(trace)
            .group_by(REQUEST)
            .agg(
                pl.col(at).filter(is_reset).first(),
                end_ns=pl.col("ts_ns").filter(is_reset).max(),
                again=again.sum(),
                num_resets=is_reset.sum(),
            )
            .filter(pl.col("num_resets") > 0)
            .sort("rank", -pl.col("again"), "request")
            .group_by("rank", maintain_order=True)
            .agg(
                pl.col("request", "step", "ts_ns", "end_ns").first(),
                pl.col(worst).head(NAMED).name.prefix("worst_"),
                all_again=pl.col("again").sum(),
                all_resets=pl.col("num_resets").sum(),
                count=pl.len(),
            )
            .sort("rank")
        )
        return each(self, reset.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        names = ("request", "again", "num_computed", "back", "step", "num_resets")
        worst = [
            f"{request} ({again:,} again, {times(num, 'time')}, first back from "
            f"{begin + back:,} to {begin:,} in step {step})"
            for request, again, begin, back, step, num in zip(
                *(row[f"worst_{name}"] for name in names), strict=True
            )
        ]
        more = ", ..." if row["count"] > len(worst) else ""
        was = "was" if row["count"] == 1 else "were"
        message = (
            f"{times(row['count'], 'request')} computed {times(row['all_again'], 'token')} again "
            f"and {was} not preempted: {', '.join(worst)}{more}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            "recomputed_tokens": row["all_again"],
            "resets": row["all_resets"],
            "worst": worst[0],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
