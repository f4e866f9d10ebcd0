"""recompute-mislabelled: a step labelled as generation computes more tokens than it has rows.

## What it finds
Steps whose decodes have more tokens than requests, though nothing speculates: no row has drafts,
and such steps are not the rule in the trace. A request that was preempted has output tokens
already, so an engine that labels by "has it produced a token yet?" calls its recomputation
generation. The steps of a rank are one finding, placed at the one with most tokens in excess.

## Why it hurts
The step takes as long as a prefill and looks like a slow decode. Averages of decode steps, cost
models fitted to them, and every split of time into prefill and decode are wrong by it.

## Example
    4 of 132 steps labelled as generation recompute: at worst 6 rows with 64 tokens
    (execute_context_0(0)_generation_6(64))

## How to fix
Label by what is computed: rows of one token each (and its drafts) are decodes, all others are
prefill, whether for the first time or again. To know rather than guess, record `is_recompute`.

## References
vLLM's `execute_context_R(T)_generation_R(T)` step tag, in which "context" counts the rows that have
no output token yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.rule import finding
from stepscope.analyzers.wording import times

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = "call rows of one token (and its drafts) decodes, and all others prefill, the first or again"
STEP = ("rank", "step")


@dataclass(frozen=True, slots=True)
class RecomputeMislabelled:
    """Steps labelled as generation carry more tokens than rows, and nothing speculates."""

    code: ClassVar[str] = "TRC005"
    name: ClassVar[str] = "recompute-mislabelled"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("steps.num_decode_reqs", "steps.num_decode_tokens")

    max_share: float = 0.5

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank with such steps."""
        steps = _generation(trace)
        in_excess = (pl.col("excess") > 0) & pl.col("speculates").not_()
        many = in_excess.mean().over("rank") > self.max_share
        worst = pl.all().exclude("rank").sort_by("excess", -pl.col("ts_ns"), "step").last()
        ranks = (
            steps.with_columns(num_steps=pl.len().over("rank"), looks_speculative=many)
            .filter(in_excess, pl.col("looks_speculative").not_())
            .with_columns(first_step=pl.col("step").min().over("rank"))
            .group_by("rank")
            .agg(worst, count=pl.len(), total=pl.col("excess").sum())
            .sort("rank")
        )
        return [self._finding(row) for row in ranks.collect().iter_rows(named=True)]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        tag = f" ({row['tag']})" if row["tag"] else ""
        message = (
            f"{row['count']:,} of {times(row['num_steps'], 'step')} labelled as generation "
            f"recompute: at worst {times(row['num_decode_reqs'], 'row')} with "
            f"{times(row['num_decode_tokens'], 'token')}{tag}"
        )
        evidence: Evidence = {
            "rows at worst": row["num_decode_reqs"],
            "tokens at worst": row["num_decode_tokens"],
            "steps": row["count"],
            "first step": row["first_step"],
            "tokens in excess": row["total"],
            "steps with generation": row["num_steps"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _generation(trace: Trace) -> pl.LazyFrame:
    """Steps with decodes: excess, their tokens beyond one a row; speculates, whether any drafts."""
    drafts = (
        trace.batch_rows.filter(pl.col("num_draft") > 0)
        .select(STEP)
        .unique()
        .with_columns(has_drafts=True)
    )
    says_so = pl.col("tag").str.contains(r"spec=[1-9]|draft\[").fill_null(value=False)
    tokens, rows = pl.col("num_decode_tokens"), pl.col("num_decode_reqs").cast(pl.Int64)
    return (
        trace.steps.filter(rows > 0, tokens.is_not_null())
        .join(drafts, on=STEP, how="left", nulls_equal=True)
        .with_columns(
            excess=tokens - rows,
            speculates=pl.col("has_drafts").fill_null(value=False) | says_so,
            end_ns=pl.col("ts_ns") + pl.col("dur_ns"),
        )
    )
