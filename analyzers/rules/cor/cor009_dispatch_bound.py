"""dispatch-bound: getting blocks onto cores takes longer than what the cores do with them.

## What it finds
For each block, the time from when it was ready and its core had nothing else to run until it began:
first the wait for its dispatch, then the way from the dispatch to the first instruction. The rule
adds that up per shape and fires when it is more than `max_ratio` times the execution of these
blocks. A block that was dispatched before it was ready waits from when it was ready.

## Why it hurts
Cores wait for the scheduler. More cores, or faster kernels, would change nothing.

## Example
    dispatching 84 MIX blocks took 2,642.4 times as long as running them: 33.5 ms for 12.7 µs,
    43% of it on the way to the core; SPMD_MIX_AIC costs most

## How to fix
Give each block more to do: fuse small kernels, use fewer and longer blocks. Hide the way to the
core: put the next block into the pending slot while one runs, or dispatch early, before the last
predecessor has ended. Where most of it is the wait for a dispatch, use more scheduler threads, or
fewer cores to poll for each.

## References
Costs of the `tensormap_and_ringbuffer` runtime of hw-native-sys/simpler: some 0.1 µs to poll a
core, 0.14 µs to dispatch a block, 0.6 µs to complete a task, 0.8 µs from one block to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration
from stepscope.analyzers.rules.cor.naming import with_kernel, with_label
from stepscope.analyzers.rules.cor.occupancy import POOL, dispatched
from stepscope.analyzers.views.known import CLOCK, knows
from stepscope.ingest.trace import Trace

FIX = (
    "give each block more to do, or hide its way to the core: "
    "make the next block pending while one runs, or dispatch early"
)


@dataclass(frozen=True, slots=True)
class DispatchBound:
    """Dispatching the blocks of a shape took longer than `max_ratio` times their execution."""

    code: ClassVar[str] = "COR009"
    name: ClassVar[str] = "dispatch-bound"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("core_spans.end_ns", CLOCK)

    max_ratio: float = 1.0

    def applies(self, trace: Trace) -> bool:
        """Tell whether times between events were measured, an order alone has no lengths; and from
        when on blocks waited for their cores.
        """
        since = ("core_spans.ready_ns", "core_spans.dispatch_ns")
        knows_since = any(knows(trace, each) for each in since)
        return trace.manifest.is_measured("core_spans") and knows_since

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and shape, placed at the block that waited longest."""
        blocks = dispatched(trace)
        spent = pl.col("overhead_ns", "launch_ns", "executed_ns").sum()
        shapes = (
            blocks.group_by(POOL)
            .agg(spent)
            .filter(pl.col("overhead_ns") > self.max_ratio * pl.col("executed_ns"))
            .collect()
        )
        if shapes.is_empty():
            return []
        longest = pl.col("step", "task", "block", "core", "group", "ts_ns", "end_ns").sort_by(
            "overhead_ns", -pl.col("ts_ns"), "task", "block", "core"
        )
        # A block of a MIX has several parts.
        num_blocks = pl.struct("task", "block").n_unique()
        worst = blocks.group_by(POOL).agg(longest.last(), num_blocks=num_blocks)
        of_shapes = (
            shapes.lazy()
            .join(worst, on=POOL, how="left")
            .join(_costliest(blocks, trace), on=POOL, how="left")
        )
        rows = with_label(of_shapes, trace).sort(POOL).collect()
        return [self._finding(row) for row in rows.iter_rows(named=True)]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        overhead_ns, executed_ns = row["overhead_ns"], row["executed_ns"]
        launch_share = row["launch_ns"] / overhead_ns
        took = f"{overhead_ns / executed_ns:,.1f} times as long as" if executed_ns else "all of"
        message = (
            f"dispatching {row['num_blocks']:,} {row['shape']} blocks took {took} running them: "
            f"{duration(overhead_ns)} for {duration(executed_ns)}, {launch_share:.0%} of it on the "
            f"way to the core; {row['kernel']} costs most"
        )
        evidence: Evidence = {
            "dispatch_ns": overhead_ns,
            "executed_ns": executed_ns,
            "launch_ns": row["launch_ns"],
            "blocks": row["num_blocks"],
            "costliest kernel": row["kernel"],
            "waited longest": row["label"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence)


def _costliest(blocks: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """The kernel of each shape that had the most overhead."""
    tasks = blocks.group_by(*POOL, "task").agg(pl.col("overhead_ns").sum())
    return (
        with_kernel(tasks.collect().lazy(), trace)
        .group_by(*POOL, "kernel")
        .agg(pl.col("overhead_ns").sum())
        .group_by(POOL)
        .agg(pl.col("kernel").sort_by("overhead_ns", "kernel").last())
    )
