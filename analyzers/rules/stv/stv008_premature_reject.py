"""premature-reject: a request was dropped for good although the pool is large enough for it.

## What it finds
Rejections for which the engine recorded which resource was short and how much of it was needed, and
the *whole* of that resource is enough: KV blocks against the size of the pool, tokens against the
budget of a step. For a resource of which the size is not recorded, what was available just then is
the measure. All that were dropped for one reason are one finding. Where requests were rejected and
it is told of none what it lacked, the rule is not applicable.

## Why it hurts
The request would have fitted a little later. Its client gets an error, or nothing, for an engine
that was merely busy; and what was preempted for it was preempted for nothing.

## Example
    13 requests were rejected though they fit, because "ignored: too few KV blocks": first req-16,
    which needed 3 of 120 KV blocks, with 1 free

## How to fix
Reject only what can never fit: compare with the size of the pool, when the request arrives. What
does not fit yet waits; if waiting has to end, let it end by time, and say so.

## References
mistral.rs issue 2033: a sequence that did not fit after one eviction was ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import NUMBER, times
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.requests import events, has_decisions
from stepscope.ingest.trace import Trace

FIX = "reject only what is larger than the whole pool or budget; let the rest wait"
UNITS = {"kv-block": "KV blocks", "token-budget": "tokens"}


@dataclass(frozen=True, slots=True)
class PrematureReject:
    """A request was rejected for a resource of which the whole is enough for it."""

    code: ClassVar[str] = "STV008"
    name: ClassVar[str] = "premature-reject"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("decisions.resource", "steps")

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether nobody was rejected, or of anybody it is known what would have done."""
        known = pl.all_horizontal(pl.col("needed", "whole").is_not_null())
        if any_row(_rejections(trace).filter(known)):
            return True
        was_rejected = any_row(events(trace).filter(pl.col("event") == "reject"))
        return has_decisions(trace) and not (was_rejected or any_row(_rejections(trace)))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per reason, with the number of requests, placed at the first of them."""
        first = ("ts_ns", "step", "subject", "needed", "available", "whole")
        reason = pl.col("reason").fill_null("no reason recorded").str.replace_all(NUMBER, "*")
        reasons = (
            _rejections(trace)
            .with_columns(reason=reason)
            .filter(pl.col("needed") <= pl.col("whole"))
            .group_by("rank", "resource", "reason")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.col("subject").n_unique(),
            )
            .sort(-pl.col("count").cast(pl.Int64), "rank", "reason", "resource")
        )
        return each(self, reasons.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        unit = UNITS.get(row["resource"], row["resource"] or "units")
        free = "" if row["available"] is None else f", with {row['available']:,} free"
        were, they = ("were", "they fit") if row["count"] > 1 else ("was", "it fits")
        message = (
            f"{times(row['count'], 'request')} {were} rejected though {they}, because "
            f'"{row["reason"]}": first {row["subject"]}, which needed {row["needed"]:,} of '
            f"{row['whole']:,} {unit}{free}"
        )
        evidence: Evidence = {
            "reason": row["reason"],
            "resource": row["resource"],
            "requests": row["count"],
            "needed": row["needed"],
            "the whole": row["whole"],
            "free then": row["available"],
        }
        at = {**row, "request": row["subject"]}
        return finding(self, message, FIX, at=at, evidence=evidence, count=row["count"])


def _rejections(trace: Trace) -> pl.LazyFrame:
    """What was rejected, with `whole`: how much there is at all of what it lacked."""
    sizes = trace.steps.group_by("rank").agg(
        pl.col("kv_blocks_total").max(), pl.col("token_budget").max()
    )
    whole = (
        pl.when(pl.col("resource") == "kv-block")
        .then("kv_blocks_total")
        .when(pl.col("resource") == "token-budget")
        .then("token_budget")
        .otherwise("available")
    )
    rejected = trace.decisions.filter(
        pl.col("subject_kind") == "request", pl.col("verdict") == "rejected"
    )
    return rejected.join(sizes, on="rank", how="left").with_columns(whole=whole)
