"""masked-row-leak: a token was kept for a request that was not in the batch.

## What it finds
Tokens in `outputs` from the logits of a step (`source_step`) in whose batch the request has no row.
All such tokens of a request are one finding. Placeholders are not tokens.

## Why it hurts
A ragged decode computes a row for every slot, also for those that are free. What an idle row
samples means nothing; kept, it is appended to whoever had the slot last: a finished output grows,
or a stopped stream sends more text.

## Example
    req-03 got 2 tokens from steps that it was not in: first token 15 in step 25, after it had
    ended

## How to fix
Mask by the live slots of the very step that was run, not by who has which slot by the time the
tokens arrive; drop tokens of rows without a request before they are appended.

## References
mlxcel pull request 468: idle rows are masked and their tokens thrown away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import STEP, rows, tokens
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.requests import REQUEST, ends
from stepscope.ingest.trace import Trace

FIX = (
    "mask by the slots that were live in the step that ran, "
    "and drop tokens of rows without a request"
)


@dataclass(frozen=True, slots=True)
class MaskedRowLeak:
    """A token came from a step in which its request has no row."""

    code: ClassVar[str] = "BAT013"
    name: ClassVar[str] = "masked-row-leak"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("batch_rows", "outputs")

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known whose logits a token comes from."""
        return any(knows(trace, f"outputs.{step}") for step in ("source_step", "step"))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per request, with the number of its tokens, in order of time."""
        scheduled = rows(trace).select(*STEP, "request").rename({"step": "from_step"})
        batches = rows(trace).select(STEP).unique().rename({"step": "from_step"})
        first = ("ts_ns", "step", "position")
        leaked = (
            tokens(trace)
            .join(scheduled, on=["rank", "from_step", "request"], how="anti")
            # A step of which no row was recorded at all says nothing of who was in it.
            .join(batches, on=["rank", "from_step"], how="semi")
            .group_by(REQUEST)
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .join(ends(trace), on=REQUEST, how="left")
            .sort("ts_ns", *REQUEST)
        )
        return each(self, leaked.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        has_ended = row["ended_ns"] is not None and row["ended_ns"] <= row["ts_ns"]
        after = ", after it had ended" if has_ended else ""
        token = "one" if row["position"] is None else f"token {row['position'] + 1:,}"
        from_steps = "a step" if row["count"] == 1 else "steps"
        message = (
            f"{row['request']} got {times(row['count'], 'token')} from {from_steps} that it was "
            f"not in: first {token} in step {row['step']}{after}"
        )
        evidence: Evidence = {
            "tokens": row["count"],
            "first position": row["position"],
            "had ended": row["outcome"] if has_ended else None,
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
