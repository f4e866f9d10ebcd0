"""not-a-number: logits from which a token was sampled are not numbers.

## What it finds
Tokens whose digest is `nan`: one of their logits is not a number. Those of a rank are one finding,
at the first of them.

## Why it hurts
A NaN stays: it goes into the KV of every later position and layer. What is sampled from it is the
first token of the vocabulary, or whatever a comparison with NaN comes to.

## Example
    80 tokens of 10 requests were sampled from logits that are not numbers: first token 1 of req-02,
    in step 7, a mixed batch

## How to fix
Look for a softmax over nothing. Where partial results of attention are merged by their log-sum-exp,
a token may have nothing in either part (a request that a chunk does not reach): both are -inf,
their difference is NaN, and the scale is 0/0. Give such a token 0, and keep its log-sum-exp at
-inf.

## References
ATOM pull request 1271: `merge_attn_states` with an empty prefix and an empty suffix.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.eqv.solo_runs import NOT_A_NUMBER
from stepscope.analyzers.views.batches import tokens
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

FIX = "guard the merge of attention to nothing with attention to nothing: its output is 0"


@dataclass(frozen=True, slots=True)
class NotANumber:
    """A token was sampled from logits that are not numbers."""

    code: ClassVar[str] = "EQV004"
    name: ClassVar[str] = "not-a-number"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("outputs",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a token has a digest."""
        return any_row(trace.outputs.filter(pl.col("digest").is_not_null()))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of tokens, placed at the first."""
        first = ("ts_ns", "from_step", "request", "position")
        kinds = trace.steps.group_by("rank", pl.col("step").alias("from_step")).agg(
            pl.col("kind").min()
        )
        ranks = (
            tokens(trace)
            .filter(pl.col("digest") == NOT_A_NUMBER)
            .group_by("rank")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_requests=pl.col("request").n_unique(),
                count=pl.len(),
            )
            .join(kinds, on=["rank", "from_step"], how="left")
            .with_columns(step="from_step")
            .sort("ts_ns", "rank")
        )
        return each(self, ranks.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        token = "one" if row["position"] is None else f"token {row['position'] + 1:,}"
        batch = f", a {row['kind']} batch" if row["kind"] else ""
        were = "was" if row["count"] == 1 else "were"
        message = (
            f"{times(row['count'], 'token')} of {times(row['num_requests'], 'request')} {were} "
            f"sampled from logits that are not numbers: first {token} of {row['request']}, in step "
            f"{row['step']}{batch}"
        )
        evidence: Evidence = {
            "tokens": row["count"],
            "requests": row["num_requests"],
            "position": row["position"],
            "batch": row["kind"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
