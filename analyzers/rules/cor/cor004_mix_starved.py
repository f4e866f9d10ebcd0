"""mix-starved: a ready MIX was overtaken by younger single-core work, again and again.

## What it finds
MIX blocks that were ready and waited while AIC-only and AIV-only blocks that became ready later
were dispatched. The number of those is counted from below: blocks dispatched while it waited, less
those that were ready before it and still to be dispatched. The rule fires when they are more than
`max_turns` to a core of the device, or when the wait is longer than `max_wait_ns` and there is any.
Blocks of one kernel are one finding, placed at the one that was overtaken most; kernels whose names
differ only in numbers count as one. A MIX that was never dispatched waits until the last dispatch.

`max_wait_ns` is as long as several decode steps; it finds a starved MIX in a graph too small for
`max_turns`, which does not depend on how long blocks run.

## Why it hurts
A MIX needs several cores of one group in the same moment. Single-core work needs one, takes each as
it frees up, and so keeps the group from ever being free. The wait has no bound, and what depends on
the MIX, often the next layer, waits with it.

## Example
    qk_pv L* b*: 37 of 96 blocks were overtaken, at worst by 187 younger blocks in 138.4 µs

## How to fix
When a MIX is left over in a pass, dispatch no AIC-only or AIV-only work in that pass, so that a
group drains; put the MIX back at its place in the queue; or hold a group for the oldest MIX.

## References
The `tensormap_and_ringbuffer` runtime of hw-native-sys/simpler skips single-core dispatch for a
pass in which a MIX is left over; its stress test `TestSpmdStarvation` is named for what happens
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.rules.cor.naming import with_kernel, with_label
from stepscope.analyzers.rules.cor.occupancy import BLOCK, holds
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "when a MIX is left over in a pass, dispatch no single-core work in that pass, "
    "or hold a group for the oldest MIX"
)


@dataclass(frozen=True, slots=True)
class MixStarved:
    """A MIX was overtaken by more than `max_turns` younger blocks to a core."""

    code: ClassVar[str] = "COR004"
    name: ClassVar[str] = "mix-starved"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("core_spans.ready_ns", CLOCK)

    max_turns: float = 2.0
    max_wait_ns: int = 10_000_000
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any MIX block ran, or was ready to."""
        tables = (trace.core_spans, trace.tasks)
        return any(any_row(rows.filter(pl.col("shape") == "MIX")) for rows in tables)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per kernel, the one overtaken most first."""
        spans = holds(trace)
        waits = _waits(spans, trace).collect().lazy()
        overtaken = _overtaken(waits, _singles(spans)).collect().lazy()
        blocks = with_kernel(overtaken, trace)
        often = pl.col("num_younger") > self.max_turns * pl.col("num_cores")
        long = (pl.col("wait_ns") > self.max_wait_ns) & (pl.col("num_younger") > 0)
        worst = pl.all().exclude("rank", "kernel").sort_by("num_younger", "wait_ns", *BLOCK).last()
        kernels = (
            blocks.with_columns(num_blocks=pl.len().over("rank", "kernel"))
            .filter(often | long)
            .group_by("rank", "kernel")
            .agg(worst, count=pl.len(), total_ns=pl.col("wait_ns").sum())
        )
        most = with_label(kernels, trace).sort(
            "num_younger", "rank", "kernel", descending=[True, False, False]
        )
        return each(self, most.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{row['kernel']}: {row['count']:,} of {times(row['num_blocks'], 'block')} "
            f"{'was' if row['num_blocks'] == 1 else 'were'} overtaken, at worst by "
            f"{times(row['num_younger'], 'younger block')} in {duration(row['wait_ns'])}"
        )
        evidence: Evidence = {
            "worst block": row["label"],
            "overtaken by at least": row["num_younger"],
            "worst_wait_ns": row["wait_ns"],
            "wait_ns": row["total_ns"],
            "blocks": row["count"],
            "blocks of the kernel": row["num_blocks"],
            "cores for single-core work": row["num_cores"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _singles(spans: pl.LazyFrame) -> pl.LazyFrame:
    return spans.filter(pl.col("shape").is_in(["AIC", "AIV"]))


def _waits(spans: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """MIX blocks from ready to dispatch, and MIX tasks that were ready and never dispatched."""
    blocks = (
        spans.filter(pl.col("shape") == "MIX")
        .group_by(*BLOCK)
        .agg(pl.col("step", "group", "ready_ns", "dispatch_ns").min())
    )
    last = spans.group_by("rank").agg(dispatch_ns=pl.col("dispatch_ns").max() + 1)
    never = (
        trace.tasks.filter(pl.col("shape") == "MIX", pl.col("ready_ns").is_not_null())
        .with_columns(pl.col("ready_ns").clip(-FAR_NS, FAR_NS))
        .join(blocks, on=["rank", "task"], how="anti", nulls_equal=True)
        .join(last, on="rank")
        .filter(pl.col("ready_ns") < pl.col("dispatch_ns"))
        .select(
            "rank", "task", "step", "ready_ns", "dispatch_ns",
            block=pl.lit(None, pl.Int32), group=pl.lit(None, pl.Int32),
        )
    )  # fmt: skip
    return pl.concat([blocks, never.select(blocks.collect_schema().names())])


def _overtaken(waits: pl.LazyFrame, singles: pl.LazyFrame) -> pl.LazyFrame:
    """Add num_younger, how many single-core blocks overtook each at least; and wait_ns."""
    cores = singles.group_by("rank").agg(num_cores=pl.col("core").n_unique().cast(pl.Int64))
    moments = singles.select("rank", "ready_ns", "dispatch_ns").collect()
    of_rank = moments.partition_by("rank", as_dict=True, maintain_order=False)
    counted = [
        _counted(of_waits, of_rank.get(rank, moments.clear()))
        for rank, of_waits in waits.collect().partition_by("rank", as_dict=True).items()
    ]
    return (
        pl.concat(counted or [_counted(waits.collect(), moments)])
        .lazy()
        .join(cores, on="rank", how="left")
        .with_columns(
            num_younger=pl.col("num_dispatched") - pl.col("num_ready"),
            wait_ns=pl.col("dispatch_ns") - pl.col("ready_ns"),
            ts_ns="ready_ns",
            end_ns="dispatch_ns",
        )
    )


def _counted(waits: pl.DataFrame, singles: pl.DataFrame) -> pl.DataFrame:
    """Add how many blocks of a rank were ready by the one moment, and dispatched before the other.

    Both are places in a sorted column.
    """
    ready, dispatched = (singles[moment].sort() for moment in ("ready_ns", "dispatch_ns"))
    return waits.with_columns(
        num_ready=ready.search_sorted(waits["ready_ns"], "right").cast(pl.Int64),
        num_dispatched=dispatched.search_sorted(waits["dispatch_ns"], "left").cast(pl.Int64),
    )
