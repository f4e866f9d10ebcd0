"""diverged-from-solo: a request's output is not what the model gives it alone.

## What it finds
Tokens whose logits have another digest (`digest`) than those of the same position in a run of the
request alone (`solo_digest`). One finding per request, at its first such token: what comes behind a
wrong token is wrong with it. A request whose first differing logits are not numbers is left to
EQV004, and one that differs from its first token on because its prompt came in chunks to EQV003.

## Why it hurts
With greedy sampling the neighbours in a batch, the slot, the order of arrival and a preemption must
not change a word. Where they do, requests see each other's memory or positions, or a token was lost
or given twice; and no test of one request alone can show it.

## Example
    req-02 differs from its solo run from token 6 of 16 on (11 tokens): first in step 5

## How to fix
Look at the step that is named: what changed for the request just before? A neighbour came or went
(slots, shared buffers), drafts were accepted (trimming), it was preempted (recompute), its batch
was of another kind or width (another kernel). Other findings of that step tell which. Where the
digest is that of another request's solo run, rows or slots were mixed up.

## References
mlxcel pull request 468, whose test of a batching scheduler is that every stream equals its solo
run; speculative decoding, which must not change greedy output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.eqv.chunked import wrong_by_chunks
from stepscope.analyzers.rules.eqv.solo_runs import NOT_A_NUMBER, REQUEST, compared, diverged
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

FIX = (
    "look at the step of the first difference: who came or went, what was accepted, preempted or "
    "moved, and which kernel ran"
)


@dataclass(frozen=True, slots=True)
class DivergedFromSolo:
    """A token's logits are not those of the request's solo run."""

    code: ClassVar[str] = "EQV001"
    name: ClassVar[str] = "diverged-from-solo"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("outputs",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a token has the digest of a solo run beside its own."""
        return any_row(compared(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per request, at its first token that differs, in order of time."""
        requests = (
            diverged(trace)
            .filter(pl.col("digest") != NOT_A_NUMBER)
            .join(wrong_by_chunks(trace), on=REQUEST, how="anti")
            .with_columns(count=pl.col("num_differ"))
            .join(_kinds(trace), on=["rank", "from_step"], how="left")
            .join(_whose(trace), on=["rank", "digest"], how="left")
            .sort("ts_ns", *REQUEST)
        )
        return each(self, requests.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{row['request']} differs from its solo run from token {row['position'] + 1:,} of "
            f"{row['num_compared']:,} on ({times(row['num_differ'], 'token')}): first in step "
            f"{row['from_step']}"
        )
        evidence: Evidence = {
            "position": row["position"],
            "tokens that differ": row["num_differ"],
            "tokens compared": row["num_compared"],
            "digest": row["digest"],
            "solo digest": row["solo_digest"],
            "digest is that of": row["whose"],
            "batch": row["kind"],
            "path": row["executed_path"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _kinds(trace: Trace) -> pl.LazyFrame:
    columns = pl.col("kind", "executed_path").min()
    return trace.steps.group_by("rank", pl.col("step").alias("from_step")).agg(columns)


def _whose(trace: Trace) -> pl.LazyFrame:
    """Whose solo run a digest belongs to: rank, digest, whose."""
    number = pl.col("position").cast(pl.Int64) + 1
    told = pl.format("{}, token {}", "request", number)
    return (
        compared(trace)
        .group_by("rank", pl.col("solo_digest").alias("digest"))
        .agg(whose=told.sort_by("position", "request").first())
    )
