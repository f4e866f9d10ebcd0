"""blocks-not-run: a task is told to have run, and not all of its blocks ran on any core.

## What it finds
Tasks that are over (their outcome is *run*, or none is recorded and their step has ended) of which
fewer blocks were on a core than they have. Tasks of one kernel are one finding, placed at the
first; kernels whose names differ only in numbers count as one. What was skipped, a dummy, or is
still pending (COR010) is not meant. Where blocks may be missing from the recording, the rule is not
applicable.

## Why it hurts
What the task should have written was not written. The graph goes on with what was in the buffer
before: nothing hangs, nothing fails, and the output is wrong.

## Example
    gate e* L* b*: 182 of 364 tasks are over and not all of their blocks ran, first gate e3 L0 b0
    with 0 of 2

## How to fix
See who retires the task without its blocks: a predicate that is read for another task, a queue that
drops what does not fit, a block counted when it is dispatched and not when it ends.

## References
Predicated dispatch in the `tensormap_and_ringbuffer` runtime of hw-native-sys/simpler, whose
example `TestPredicatedDispatch_PredicateFalseSkips` records a task that is rightly skipped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.cor.naming import with_kernel, with_name
from stepscope.analyzers.rules.cor.occupancy import holds
from stepscope.analyzers.views.known import knows
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "see who retires the task without its blocks: a predicate of another task, a queue that drops, "
    "a block that counts before it has run"
)
TASK = ("rank", "task")


@dataclass(frozen=True, slots=True)
class BlocksNotRun:
    """A task is over, and fewer of its blocks were on a core than it has."""

    code: ClassVar[str] = "COR012"
    name: ClassVar[str] = "blocks-not-run"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("tasks", "core_spans.block")

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether no block, task or outcome of a task can be missing from the recording."""
        if trace.manifest.is_recording and not knows(trace, "tasks.outcome"):
            return False
        states = trace.manifest.tables
        known = (states.get("tasks"), states.get("core_spans"))
        return trace.manifest.closed and None not in known and "partial" not in known

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per kernel, with the number of such tasks, those with most first."""
        ran = holds(trace).group_by(TASK).agg(num_ran=pl.col("block").n_unique())
        tasks = (
            _over(trace)
            .join(ran, on=TASK, how="left")
            .with_columns(pl.col("num_ran").cast(pl.Int64).fill_null(0))
        )
        counted = with_kernel(tasks, trace).with_columns(num_tasks=pl.len().over("rank", "kernel"))
        first = pl.all().exclude("rank", "kernel").sort_by("ts_ns", "task").first()
        kernels = (
            counted.filter(pl.col("num_ran") < pl.col("num_blocks"))
            .group_by("rank", "kernel")
            .agg(first, count=pl.len())
        )
        rows = with_name(kernels, trace).sort(-pl.col("count").cast(pl.Int64), "rank", "kernel")
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{row['kernel']}: {row['count']:,} of {times(row['num_tasks'], 'task')} "
            f"{'are' if row['count'] > 1 else 'is'} over and not all of "
            f"{'their' if row['count'] > 1 else 'its'} blocks ran, first {row['name']} with "
            f"{row['num_ran']:,} of {row['num_blocks']:,}"
        )
        evidence: Evidence = {
            "tasks": row["count"],
            "tasks of the kernel": row["num_tasks"],
            "first task": row["name"],
            "blocks that ran": row["num_ran"],
            "blocks": row["num_blocks"],
            "outcome": row["outcome"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _over(trace: Trace) -> pl.LazyFrame:
    """Tasks that need a core and are over: rank, step, task, ts_ns, end_ns, num_blocks, outcome."""
    ended = trace.steps.group_by("rank", "step").agg(is_over=pl.col("dur_ns").is_not_null().any())
    is_over = pl.col("is_over").fill_null(value=not trace.has("steps"))
    needs_core = (pl.col("shape") != "DUMMY").fill_null(value=True)
    return (
        trace.tasks.filter(needs_core, pl.col("task").is_not_null())
        .join(ended, on=["rank", "step"], how="left", nulls_equal=True)
        .filter((pl.col("outcome") == "run") | (pl.col("outcome").is_null() & is_over))
        .group_by(TASK)
        .agg(
            pl.col("step", "ts_ns", "outcome").min(),
            end_ns=pl.col("retired_ns").max(),
            num_blocks=pl.col("num_blocks").max().cast(pl.Int64).fill_null(1),
        )
        .with_columns(pl.col("ts_ns", "end_ns").clip(-FAR_NS, FAR_NS))
    )
