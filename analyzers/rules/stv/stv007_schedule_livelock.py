"""schedule-livelock: the scheduler works and nothing comes of it.

## What it finds
Two ways of going round in circles:

- within a step: one request was considered and put back more than `max_times` times;
- over steps: more than `max_steps` steps running in which the very same rows ran, each request from
  the very same token on, so that nobody got any further.

Steps that run nothing at all, with room and with requests waiting, are STV010.

## Why it hurts
The engine is busy and answers nobody, and it stays so: what it considers does not change, so what
it decides does not either. Only a watchdog or a restart ends it.

## Example
    req-33 was considered 2,560 times in step 70 and put back each time, last because "another
    bucket runs"

## How to fix
Collect what does not fit in a list of its own and give it back to the queue after the loop; never
append to the queue that the loop drains. Bound the loop, and record when the bound is reached.

## References
mistral.rs pull request 2034: incompatible sequences went back on the queue being drained.
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
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.requests import has_decisions
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.trace import Trace

FIX = (
    "put what does not fit in a list of its own, and back on the queue after the loop; "
    "bound the loop"
)


@dataclass(frozen=True, slots=True)
class ScheduleLivelock:
    """A request was put back `max_times` times in a step, or the same batch ran `max_steps` times.

    What was put back is told by `decisions`, what ran by `batch_rows`; either is enough.
    """

    code: ClassVar[str] = "STV007"
    name: ClassVar[str] = "schedule-livelock"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("steps",)

    max_times: int = 16
    max_steps: int = 8
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known what was put back, or from which token on each row ran."""
        return knows(trace, "batch_rows.num_computed") or has_decisions(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per step that went round in circles, then one per rank that stood still."""
        circles = each(self, self._circles(trace).collect(), self._of_circle, FIX, self.limit)
        same = worst_of_each_rank(self._standstills(trace)).sort("rank").collect()
        return circles + each(self, same, self._of_standstill, FIX, self.limit)

    def _circles(self, trace: Trace) -> pl.LazyFrame:
        most = ("num_times", "request", "reason")
        return (
            trace.decisions.filter(
                pl.col("subject_kind") == "request",
                pl.col("verdict") == "put-back",
                pl.col("ts_ns").is_not_null(),
            )
            .group_by(*STEP, request="subject")
            .agg(
                pl.col("ts_ns").min(),
                end_ns=pl.col("ts_ns").max(),
                reason=pl.col("reason").sort_by("ts_ns", "reason").last(),
                num_times=pl.len().cast(pl.Int64),
            )
            .filter(pl.col("num_times") > self.max_times)
            .group_by(STEP)
            .agg(
                pl.col(most).sort_by("num_times", "request", descending=[True, False]).first(),
                pl.col("ts_ns").min(),
                pl.col("end_ns").max(),
                num_requests=pl.len(),
                count=pl.col("num_times").sum(),
            )
            .sort(-pl.col("count"), *STEP)
        )

    def _standstills(self, trace: Trace) -> pl.LazyFrame:
        """Runs of steps whose batch is that of the step before, from the same tokens on."""
        row = pl.struct("request", "num_computed")
        batches = (
            rows(trace)
            .group_by(STEP)
            .agg(
                batch=row.hash(seed=0).sum(),
                request=pl.col("request").min(),
                is_known=pl.col("num_computed").is_not_null().all(),
            )
        )
        before = pl.col("batch").shift(1).over("rank")
        is_same = (pl.col("batch") == before) & pl.col("is_known")
        steps = (
            formed(trace)
            .join(batches, on=STEP, how="left")
            .sort("rank", "ts_ns", "step", "end_ns")
            .with_columns(is_same=is_same)
        )
        runs = streaks(steps, pl.col("is_same"), pl.col("request").min())
        return runs.filter(pl.col("num_steps") > self.max_steps)

    def _of_circle(self, row: Mapping[str, Any]) -> Finding:
        others = row["num_requests"] - 1
        who = row["request"] + (f" (and {times(others, 'other')})" if others else "")
        message = (
            f"{who} was considered {times(row['num_times'], 'time')} in step {row['step']} and put "
            f'back each time, last because "{row["reason"] or "no reason recorded"}"'
        )
        evidence: Evidence = {
            "most times": row["num_times"],
            "requests": row["num_requests"],
            "times in all": row["count"],
            "reason": row["reason"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])

    def _of_standstill(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"the same batch ran {times(row['num_steps'], 'time')} more (steps {row['step']} to "
            f"{row['last_step']}) from the same tokens on, {row['request']} among them"
        )
        evidence: Evidence = {"longest run_steps": row["num_steps"], "steps": row["all_steps"]}
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
