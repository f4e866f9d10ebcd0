"""preempted-with-room: a request was preempted while enough KV blocks were free.

## What it finds
Preemptions at which enough KV blocks were free, by the engine's own record of how many were needed
and how many were free. If none was needed and none was free (the victim did not fit the batch,
say), the preemption was not for memory at all; these are a finding of their own. Preemptions for
the same reason are one finding. The rule is not applicable if no preemption has a record of how
many blocks were needed.

## Why it hurts
The victim's KV blocks are thrown away and computed again from its first token, for nothing. It
loses its place as well, and may be preempted again before it has caught up.

## Example
    1,514 preemptions of 39 requests with room, because "another bucket runs: len=* text": first r1
    for r2, which needed 0 KV blocks with 88 free

    11 preemptions of 11 requests for no KV block, because "another bucket runs": first r1 for r9,
    which needed none

## How to fix
Preempt for memory only, and only when the request that needs it does not fit. A request that cannot
run in this step for another reason (shape, modality, adapter) is deferred with its blocks.

## References
mistral.rs pull request 2034, which defers incompatible sequences (`deferred_running`).
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
from stepscope.analyzers.views.requests import events
from stepscope.ingest.trace import Trace

FIX = (
    "preempt only when the blocks that are needed are not free; "
    "defer what cannot run in this step, with its blocks"
)


@dataclass(frozen=True, slots=True)
class PreemptedWithRoom:
    """A preemption was decided with at least `spare_blocks` more blocks free than needed."""

    code: ClassVar[str] = "KVB003"
    name: ClassVar[str] = "preempted-with-room"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("decisions.needed", "decisions.available", "lifecycle")

    spare_blocks: int = 0
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether nobody was preempted, or of anybody it is known what was needed and free."""
        was_preempted = any_row(events(trace).filter(pl.col("event") == "preempt"))
        known = pl.all_horizontal(pl.col("needed", "available").is_not_null())
        return any_row(_preemptions(trace).filter(known)) or not (
            was_preempted or any_row(_preemptions(trace))
        )

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per reason, with and without room, placed at its first preemption."""
        first = ("ts_ns", "step", "subject", "holder", "needed", "available")
        reasons = (
            _preemptions(trace)
            .filter(pl.col("available") - pl.col("needed") >= self.spare_blocks)
            .with_columns(
                reason=_in_general(pl.col("reason")),
                has_room=pl.max_horizontal("available", "needed") > 0,
            )
            .group_by("rank", "reason", "has_room")
            .agg(
                pl.col(first).sort_by(first).first(),
                count=pl.len(),
                end_ns=pl.col("ts_ns").max(),
                num_requests=pl.col("subject").n_unique(),
                least_spare=(pl.col("available") - pl.col("needed")).min(),
            )
            .sort(-pl.col("count").cast(pl.Int64), "rank", "reason", "has_room")
        )
        return each(self, reasons.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        has_room = row["has_room"]
        for_whom = f" for {row['holder']}" if row["holder"] else ""
        needed = f"{row['needed']} KV blocks with {row['available']} free" if has_room else "none"
        message = (
            f"{times(row['count'], 'preemption')} of {times(row['num_requests'], 'request')} "
            f'{"with room" if has_room else "for no KV block"}, because "{row["reason"]}": '
            f"first {row['subject']}{for_whom}, which needed {needed}"
        )
        evidence: Evidence = {
            "reason": row["reason"],
            "preemptions": row["count"],
            "requests": row["num_requests"],
            "first": f"{row['subject']}{for_whom}",
            "needed_blocks": row["needed"],
            "free_blocks": row["available"],
            "spare_blocks at least": row["least_spare"],
        }
        at = {**row, "request": row["subject"]}
        return finding(self, message, FIX, at=at, evidence=evidence, count=row["count"])


def _preemptions(trace: Trace) -> pl.LazyFrame:
    return trace.decisions.filter(
        pl.col("subject_kind") == "request", pl.col("verdict") == "preempted"
    )


def _in_general(reason: pl.Expr) -> pl.Expr:
    """A reason without the numbers of the case."""
    return reason.fill_null("no reason recorded").str.replace_all(NUMBER, "*")
