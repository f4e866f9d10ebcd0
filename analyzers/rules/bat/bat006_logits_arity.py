"""logits-arity: a step computed another number of logits rows than it has sequences to sample.

## What it finds
Steps whose `logits_rows` is neither the number of rows that sample, that is decodes and chunks that
end their prompts, nor that number with a row more for each draft token. Each kind of step (prefill,
decode, mixed) is a finding of its own. Steps of which no logits were computed at all are not
counted, nor those whose rows do not say whether they end their prompts.

Some engines, vLLM among them, compute logits of each row of the batch and throw away the tokens of
prompts that go on. Where the manifest says so (`logits_of_every_row` in its config's `engine`), as
many rows as the batch has are right.

## Why it hurts
Logits rows are given to requests in order. With a row too many or too few every request behind it
samples somebody else's token, and with one row for all of them everybody gets the same.

## Example
    12 mixed steps computed 1,936 logits rows for 3 sequences at worst: first step 4

## How to fix
In a mixed batch take the last token of each prompt that ends in the step, and all tokens of
decodes: `[last token of each prefill | decode rows]`. Assert that rows of logits and requests to
sample agree before sampling.

## References
ATOM's mixed batches: `ParallelLMHead` gathers the prompts' last tokens by `cu_seqlens_q` of the
prefill segment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import STEP, formed, rows
from stepscope.analyzers.views.declared import computes_every_row
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

FIX = "take the last token of each prompt that ends and all decode rows; assert before sampling"


@dataclass(frozen=True, slots=True)
class LogitsArity:
    """`logits_rows` differs from the rows that sample."""

    code: ClassVar[str] = "BAT006"
    name: ClassVar[str] = "logits-arity"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("batch_rows", "steps.logits_rows")

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known of any row whether it samples."""
        samples = (pl.col("phase") == "decode") | pl.col("is_final_chunk").is_not_null()
        return computes_every_row(trace) or any_row(trace.batch_rows.filter(samples))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and kind of step, with the number of steps, placed at the first."""
        samples = (pl.col("phase") == "decode") | pl.col("is_final_chunk")
        if computes_every_row(trace):
            samples = pl.col("phase").is_not_null()
        expected = (
            rows(trace)
            .group_by(STEP)
            .agg(
                num_expected=samples.sum().cast(pl.Int64),
                num_drafts=pl.col("num_draft").fill_null(0).sum().cast(pl.Int64),
                is_known=samples.is_not_null().all(),
            )
            .filter("is_known")
        )
        computed, sampled = pl.col("logits_rows"), pl.col("num_expected")
        first = ("ts_ns", "step", "end_ns")
        worst = ("excess", "logits_rows", "num_expected")
        wrong = (
            formed(trace)
            .join(expected, on=STEP, how="left")
            .filter(
                computed > 0, computed != sampled, computed != sampled + pl.col("num_drafts")
            )
            .with_columns(excess=(computed - sampled).abs())
            .group_by("rank", "kind")
            .agg(
                pl.col(first).sort_by(first).first(),
                pl.col(worst).sort_by(worst).last(),
                count=pl.len(),
            )
            .sort("ts_ns", "rank", "kind")
        )  # fmt: skip
        return each(self, wrong.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{times(row['count'], (row['kind'] or 'unknown') + ' step')} computed "
            f"{times(row['logits_rows'], 'logits row')} for "
            f"{times(row['num_expected'], 'sequence')} at worst: first step {row['step']}"
        )
        evidence: Evidence = {
            "kind": row["kind"],
            "steps": row["count"],
            "logits rows": row["logits_rows"],
            "sequences to sample": row["num_expected"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
