"""recompute-mislabelled: a step labelled as generation computes more tokens than it has rows.

## What it finds
Steps whose decodes have more tokens than requests, though they are not speculated. A request that
was preempted has output tokens already, so an engine that labels by "has it produced a token yet?"
calls its recomputation generation. The steps of a rank are one finding, placed at the one with most
tokens in excess.

Speculation has more tokens than rows as well. Drafts that rows or tags tell of are taken off. Where
nothing tells of them, a run of such steps recomputes if a row came back in its first (more rows
than decoded or were in prefill in the step before: speculation brings no rows), or if one of its
steps has more than `max_drafts` tokens in excess for each row. Where such runs are left that
neither explains, the engine may speculate: then only steps beyond `max_drafts` are counted, and
without any the rule is not applicable.

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
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.known import any_row
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

    max_drafts: int = 32

    def applies(self, trace: Trace) -> bool:
        """Tell whether all tokens in excess are told to be drafts, or shown to be no drafts."""
        steps = self._explained(trace)
        return not any_row(steps.filter("may_speculate")) or any_row(steps.filter("recomputes"))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank with such steps."""
        worst = pl.all().exclude("rank").sort_by("excess", -pl.col("ts_ns"), "step").last()
        ranks = (
            self._explained(trace)
            .filter("recomputes")
            .with_columns(first_step=pl.col("step").min().over("rank"))
            .group_by("rank")
            .agg(worst, count=pl.len(), total=pl.col("excess").sum())
            .sort("rank")
        )
        return [self._finding(row) for row in ranks.collect().iter_rows(named=True)]

    def _explained(self, trace: Trace) -> pl.LazyFrame:
        """Steps with decodes: may_speculate, of their rank, and recomputes, of the step itself."""
        in_excess = pl.col("excess") > 0
        run = ["rank", (in_excess != in_excess.shift(1)).cum_sum().over("rank").fill_null(0)]
        is_large = pl.col("excess") > self.max_drafts * pl.col("num_decode_reqs").cast(pl.Int64)
        return (
            _generation(trace)
            .with_columns(num_steps=pl.len().over("rank"), is_large=is_large)
            .with_columns(
                explained=in_excess
                & (pl.col("came_back").first().over(run) | pl.col("is_large").any().over(run))
            )
            .with_columns(may_speculate=(in_excess & pl.col("explained").not_()).any().over("rank"))
            .with_columns(
                recomputes=pl.when("may_speculate").then("is_large").otherwise("explained")
            )
        )

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
    """Steps with decodes in order: excess, their tokens beyond one a row and all drafts told of.

    And came_back: they are more rows than the step before decoded or had in prefill.
    """
    tokens, rows = pl.col("num_decode_tokens"), pl.col("num_decode_reqs").cast(pl.Int64)
    before = pl.col("num_decode_reqs").cast(pl.Int64) + pl.col("num_prefill_reqs")
    came_back = rows > before.shift(1).over("rank")
    says_so = pl.col("tag").str.contains(r"spec=[1-9]|draft\[").fill_null(value=False)
    drafts = pl.when(says_so).then(tokens).otherwise(pl.col("drafts").fill_null(0))
    return (
        trace.steps.filter(pl.col("ts_ns").is_not_null())
        .sort("rank", "ts_ns", "step")
        .with_columns(came_back=came_back.fill_null(value=False))
        .filter(rows > 0, tokens.is_not_null())
        .join(_drafts(trace), on=STEP, how="left", nulls_equal=True, maintain_order="left")
        .with_columns(
            excess=(tokens - rows - drafts).clip(lower_bound=0),
            end_ns=pl.col("ts_ns") + pl.col("dur_ns"),
        )
    )


def _drafts(trace: Trace) -> pl.LazyFrame:
    """How many tokens the rows of each step say were drafted."""
    drafted = trace.batch_rows.group_by(STEP).agg(drafts=pl.col("num_draft").sum())
    return drafted.with_columns(pl.col("drafts").cast(pl.Int64))
