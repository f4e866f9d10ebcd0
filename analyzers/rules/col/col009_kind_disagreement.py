"""kind-disagreement: data-parallel ranks ran different kinds of batches in one step.

## What it finds
Steps in which a rank ran prefills (a prefill or a mixed batch) and another one decodes alone. A
dummy is of the kind that its path names. Only ranks that schedule for themselves count, which have
`batch_rows`, and only ranks in lock-step: one of them runs dummies, or they meet in collectives.
All such steps are one finding, with what each rank ran in the first of them.

## Why it hurts
Ranks that share their experts exchange tokens in every layer, and prompts and decodes use kernels
of different shapes for that. Ranks that come with different ones wait for each other for good, or
read each other's buffers with the wrong layout.

## Example
    ranks ran different kinds in 3 steps: first step 42, rank 0 mixed, rank 1 decode

## How to fix
Let each rank foretell its next batch from all that the scheduler will look at: prompts that have
begun as well as those that wait, and the budget and running slots that are left. Agree on the kind
before the batch is formed, and form none of another kind.

## References
ATOM pull request 1271: mixed batches beside data-parallel ranks, which must agree on a kind. vLLM's
dummy batches of data-parallel ranks without requests.
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
from stepscope.analyzers.views.collectives import operations
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.derive.collectives.calls import meetings
from stepscope.ingest.trace import Trace

FIX = (
    "foretell a batch from all that the scheduler looks at, prompts that have begun included, "
    "and agree on its kind before it is formed"
)
NUM_SHOWN = 8


@dataclass(frozen=True, slots=True)
class KindDisagreement:
    """Ranks in lock-step ran prefills and decodes in the same step."""

    code: ClassVar[str] = "COL009"
    name: ClassVar[str] = "kind-disagreement"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("steps", "batch_rows")

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether ranks that schedule for themselves run in lock-step."""
        num_ranks = _kinds(trace).select(pl.col("rank").n_unique()).collect().item()
        return bool(num_ranks > 1 and _are_in_step(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding for all such steps, placed at the first."""
        if not _are_in_step(trace):
            return []
        ran = pl.format("rank {} {}", "rank", "kind")
        steps = (
            _kinds(trace)
            .group_by("step")
            .agg(
                pl.col("ts_ns").min(),
                pl.col("end_ns").max(),
                ran=ran.sort_by("rank"),
                num_kinds=pl.col("like").n_unique(),
                is_once=pl.col("rank").n_unique() == pl.len(),
            )
            # A step that a rank has twice says nothing about which was meant.
            .filter(pl.col("num_kinds") > 1, "is_once")
        )
        first = ("ts_ns", "step", "ran")
        found = steps.select(
            *(pl.col(name).sort_by("step").first() for name in first),
            end_ns=pl.col("end_ns").max(),
            count=pl.len(),
        ).filter(pl.col("count") > 0)
        return each(self, found.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        ran = ", ".join(row["ran"][:NUM_SHOWN]) + (", ..." if len(row["ran"]) > NUM_SHOWN else "")
        message = (
            f"ranks ran different kinds in {times(row['count'], 'step')}: first step "
            f"{row['step']}, {ran}"
        )
        evidence: Evidence = {"steps": row["count"], "ranks": len(row["ran"]), "ran": ran}
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _kinds(trace: Trace) -> pl.LazyFrame:
    """Steps of ranks that schedule, with `like`: prefill, which mixed is too, or decode."""
    kind, path = pl.col("kind"), pl.col("executed_path")
    is_dummy = kind == "dummy"
    like = (
        pl.when(kind.is_in(["prefill", "mixed"]) | (is_dummy & path.str.contains("prefill|mixed")))
        .then(pl.lit("prefill"))
        .when((kind == "decode") | (is_dummy & path.str.contains("decode", literal=True)))
        .then(pl.lit("decode"))
    )
    return (
        formed(trace)
        .join(trace.batch_rows.select("rank").unique(), on="rank", how="semi")
        .with_columns(like=like)
        .filter(pl.col("like").is_not_null())
        .with_columns(kind=pl.when(is_dummy).then(pl.format("dummy {}", "like")).otherwise("kind"))
    )


def _are_in_step(trace: Trace) -> bool:
    """Whether a rank that schedules runs dummies, or meets another one in a collective."""
    dummies = trace.steps.filter(pl.col("kind") == "dummy").select("rank")
    met = meetings(operations(trace), rank=pl.col("rank").unique()).select("rank").explode("rank")
    ranks = trace.batch_rows.select("rank").unique()
    return any(any_row(each.join(ranks, on="rank", how="semi")) for each in (dummies, met))
