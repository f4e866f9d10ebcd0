"""priority-inverted: a request waits for long while requests of lower priority run.

## What it finds
Requests of an engine that schedules by priority, which wait while a request of lower priority runs
all the time and keeps its running slot or its KV blocks. The wait must last for at least `min_ns`;
in a shorter run, for `min_share` of the run and `min_steps` steps. A lower number is a higher
priority. There is one finding for each request, the longest wait first.

An engine may let a running request finish first, which takes some seconds; `min_ns` is longer than
that. In a run of seconds, a quarter of the run is long enough.

## Why it hurts
Priorities are given to requests that must not wait. vLLM orders its queue by them, and preempts for
them only when KV blocks are short: when all running slots are taken, an urgent request waits until
one of the others ends, however long that takes.

## Example
    urgent (priority -5) waited 30.0 s while 16 requests of lower priority ran (10); the running
    slots were taken

## How to fix
Preempt a request of lower priority when a running slot is short, not only when KV blocks are; keep
some running slots for urgent requests; or bound the length of the others (`max_tokens`).

## References
vLLM issues 40004 and 54530 (an urgent request waits for running slots of others).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.declared import is_by_priority
from stepscope.analyzers.views.known import CLOCK
from stepscope.analyzers.views.requests import REQUEST, waits
from stepscope.ingest.derive import states
from stepscope.ingest.times import FAR_NS, SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "preempt a request of lower priority when running slots are short, keep some slots for urgent "
    "requests, or bound the length of the others"
)
SHORT_OF = {"slot": "the running slots were taken", "seat": "the running slots were taken",
            "kv-block": "too few KV blocks were free"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PriorityInverted:
    """A request waited for `min_ns` while requests of lower priority ran all the time."""

    code: ClassVar[str] = "STV024"
    name: ClassVar[str] = "priority-inverted"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request", "lifecycle.priority", CLOCK)

    min_ns: int = 10 * SECOND
    min_share: float = 0.25
    min_steps: int = 8
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether the engine declares that it schedules by priority."""
        return is_by_priority(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per request, at its longest such wait."""
        priorities = (
            trace.lifecycle.filter(pl.col("priority").is_not_null())
            .group_by(REQUEST)
            .agg(pl.col("priority").first())
        )
        lasted = pl.col("to_ns") - pl.col("from_ns")
        least = self._least(trace)
        long = (
            waits(trace)
            .join(least, on="rank", how="left")
            .with_columns(pl.col("least_ns").fill_null(self.min_ns))
            .filter(lasted >= pl.col("least_ns"))
            .join(priorities, on=REQUEST)
        )
        running = (
            states.request_states(trace.lifecycle)
            .filter(pl.col("state") == states.RUNNING)
            .select(*REQUEST, ran_from="from_ns", ran_to=pl.col("to_ns").fill_null(FAR_NS))
            .join(priorities.rename({"priority": "other_priority"}), on=REQUEST)
            .rename({"request": "other"})
        )
        rows = (
            long.join(running, on="rank")
            .filter(
                pl.col("other_priority") > pl.col("priority"),
                pl.col("ran_from") <= pl.col("from_ns"),
                pl.col("ran_to") >= pl.col("from_ns") + pl.col("least_ns"),
            )
            .group_by(*REQUEST, "from_ns", "to_ns", "step", "priority")
            .agg(
                pl.col("other_priority").min(),
                num_lower=pl.col("other").n_unique(),
                waited_ns=pl.min_horizontal("ran_to", "to_ns").max() - pl.col("from_ns").first(),
            )
            .sort("waited_ns", "request")
            .group_by(REQUEST)
            .last()
            .join(_short_of(trace), on=REQUEST, how="left")
            .rename({"from_ns": "ts_ns", "to_ns": "end_ns"})
            .sort("waited_ns", "request", descending=[True, False])
        )
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _least(self, trace: Trace) -> pl.LazyFrame:
        """The shortest wait that counts, by rank: a share of the run, but `min_steps` or more."""
        end_ns = pl.col("ts_ns") + pl.col("dur_ns").fill_null(0)
        share_ns = self.min_share * (end_ns.max() - pl.col("ts_ns").min())
        some_ns = self.min_steps * pl.col("ts_ns").sort().diff().median()
        is_known = pl.len() > self.min_steps
        least_ns = pl.min_horizontal(pl.max_horizontal(share_ns, some_ns), self.min_ns)
        known = trace.steps.filter(pl.col("ts_ns").is_not_null()).group_by("rank")
        return known.agg(
            least_ns=pl.when(is_known).then(least_ns).otherwise(self.min_ns).cast(pl.Int64)
        )

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        short = SHORT_OF.get(row["resource"] or "", "")
        who = f"{row['request']} (priority {row['priority']})"
        message = (
            f"{who} waited {duration(row['waited_ns'])} while "
            f"{times(row['num_lower'], 'request')} of lower priority ran ({row['other_priority']})"
            f"{'; ' if short else ''}{short}"
        )
        evidence: Evidence = {
            "waited_ns": row["end_ns"] - row["ts_ns"],
            "priority": row["priority"],
            "priority of those that ran": row["other_priority"],
            "requests of lower priority": row["num_lower"],
            "short of": row["resource"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence)


def _short_of(trace: Trace) -> pl.LazyFrame:
    """What most decisions say that each request lacked: rank, request, resource."""
    return (
        trace.decisions.filter(
            pl.col("subject_kind") == "request", pl.col("resource").is_not_null()
        )
        .group_by("rank", "subject", "resource")
        .len()
        .sort("len", "resource")
        .group_by("rank", "subject")
        .agg(pl.col("resource").last())
        .rename({"subject": "request"})
    )
