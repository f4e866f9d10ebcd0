"""sync-start-split: a task whose blocks must start together was started in part.

## What it finds
Tasks marked `is_sync_start` of which some blocks were dispatched and others later or never. Later
is, however short, a block whose core was still held by another when the first was dispatched: there
was no room for all then. Otherwise, as they are dispatched one after another, the rule allows
`per_part_ns` for each core and `grace_ns` besides. A block that was put behind another, into its
core's pending slot, did not wait for room. Blocks that never came count only when no row can be
missing from the trace. Tasks of one kernel are one finding, placed at the one that was split by
most.

## Why it hurts
The blocks of such a task wait for one another: a barrier across cores, an all-reduce on the chip.
Those that started hold their cores and spin until the last one starts. If what the last one needs
is held by those that spin, or by another task that was started in part, nothing ends any more.

## Example
    sync_mix was started in part, 2 of 2 times: at worst 3 of 6 blocks at first, the last 22.4 µs
    after the first

## How to fix
Reserve cores for all blocks before the first is dispatched, and give all of them back when there
are too few. While such a task waits, let the device drain: place nothing new, on any thread.

## References
`require_sync_start` and its drain in the `tensormap_and_ringbuffer` runtime of
hw-native-sys/simpler; cooperative launches in CUDA, which are refused when they do not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.rules.cor.naming import with_kernel
from stepscope.analyzers.rules.cor.occupancy import holds
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.trace import Trace

FIX = "reserve cores for all blocks before the first is dispatched, or for none; drain meanwhile"
TASK = ("rank", "task")


@dataclass(frozen=True, slots=True)
class SyncStartSplit:
    """Blocks that must start together were dispatched apart, or not all of them."""

    code: ClassVar[str] = "COR008"
    name: ClassVar[str] = "sync-start-split"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("core_spans.dispatch_ns", "tasks.is_sync_start", CLOCK)

    grace_ns: int = 2_000
    per_part_ns: int = 500
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any task is to start all of its blocks together."""
        return any_row(trace.tasks.filter("is_sync_start"))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per kernel, the one split most often first."""
        tasks = with_kernel(self._tasks(trace).collect().lazy(), trace)
        kernel = ("rank", "kernel")
        lost = pl.col("num_expected") - pl.col("num_started")
        worst = pl.all().exclude(kernel).sort_by(lost, "spread_ns", -pl.col("ts_ns"), "task").last()
        split = (
            tasks.with_columns(num_tasks=pl.len().over(kernel))
            .filter("is_split")
            .group_by(kernel)
            .agg(worst, count=pl.len())
            .sort(-pl.col("count").cast(pl.Int64), *kernel)
        )
        return each(self, split.collect(), self._finding, FIX, self.limit)

    def _tasks(self, trace: Trace) -> pl.LazyFrame:
        """Each all-or-nothing task that started: its blocks, and how far apart they were."""
        together = (
            trace.tasks.filter("is_sync_start")
            .group_by(TASK)
            .agg(num_blocks=pl.col("num_blocks").max())
        )
        spread = pl.col("dispatch_ns").max() - pl.col("dispatch_ns").min()
        allowed = self.grace_ns + self.per_part_ns * pl.len()
        first_ns = pl.col("dispatch_ns").min()
        # It was sent there once the one before it had ended, which ran when the first was sent.
        is_later = pl.col("holder_end_ns").is_between(first_ns, "dispatch_ns", closed="right")
        is_later = is_later.fill_null(value=False) & (pl.col("slot") != "pending").fill_null(
            value=True
        )
        at_first = (pl.col("dispatch_ns") <= first_ns + allowed) & ~is_later
        started = pl.col("block").n_unique().cast(pl.Int64)
        expected = pl.col("num_blocks").first().cast(pl.Int64)
        is_whole = trace.manifest.is_whole("core_spans")
        num_expected = pl.max_horizontal(expected, started) if is_whole else started
        return (
            holds(trace)
            .join(together, on=TASK, how="inner")
            .group_by(TASK)
            .agg(
                pl.col("step").min(),
                ts_ns=pl.col("dispatch_ns").min(),
                end_ns=pl.col("dispatch_ns").max(),
                spread_ns=spread,
                is_apart=(spread > allowed) | is_later.any(),
                num_at_first=pl.col("block").filter(at_first).n_unique(),
                num_started=started,
                num_expected=num_expected,
            )
            .with_columns(
                is_split=pl.col("is_apart") | (pl.col("num_started") < pl.col("num_expected"))
            )
        )

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        lost = row["num_expected"] - row["num_started"]
        how = (
            f"{lost:,} never" if lost else f"the last {duration(row['spread_ns'])} after the first"
        )
        message = (
            f"{row['kernel']} was started in part, {row['count']:,} of "
            f"{times(row['num_tasks'], 'time')}: at worst {row['num_at_first']:,} of "
            f"{times(row['num_expected'], 'block')} at first, {how}"
        )
        evidence: Evidence = {
            "blocks at first": row["num_at_first"],
            "blocks": row["num_expected"],
            "blocks never started": lost,
            "worst_spread_ns": row["spread_ns"],
            "tasks": row["count"],
            "tasks of the kernel": row["num_tasks"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
