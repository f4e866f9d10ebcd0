"""dependency-violated: a task began before a task that it waits for had ended.

## What it finds
Edges of the task graph whose later task began to execute, `ts_ns` of its first block, before the
last block of the earlier one ended. That it was dispatched before is no fault: it may have been
staged on its core. An earlier task that never ran ended when it retired. One that never ended is
counted only when no row can be missing from the trace. Edges between the same two kernels are one
finding, placed at the later task that began most too early.

`early_ns` is 1: all times come from one counter of the device, so one tick too early is wrong.

## Why it hurts
The later task reads what is not written yet, or overwrites what is still read. Results are wrong
without a sign of it, and differ from run to run.

## Example
    softmax r* t* began before qk r* t* had ended, on 12 of 24 edges, by 6.1 µs at worst

## How to fix
Release the tasks that wait for a task only when its last block has ended, not its first, and count
each block once: look for a counter that several scheduler threads decrement, a completion that is
delivered twice, and a ready flag that is left over from the task that had the slot before.

## References
Fan-in counters and completion in the `tensormap_and_ringbuffer` runtime of hw-native-sys/simpler.
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
from stepscope.analyzers.rules.cor.occupancy import holds, knows_ends
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "release what waits for a task when its last block has ended, not its first, "
    "and count each completion once"
)
TASK = ("rank", "task")


@dataclass(frozen=True, slots=True)
class DependencyViolated:
    """A task began before one that it waits for had ended."""

    code: ClassVar[str] = "COR007"
    name: ClassVar[str] = "dependency-violated"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("core_spans", "task_edges")

    early_ns: int = 1
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether ends are recorded, or none can be missing."""
        return knows_ends(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per pair of kernels, the one with most edges first."""
        if not self._any(trace):
            return []
        edges = with_kernel(_edges(trace).collect().lazy(), trace)
        edges = with_kernel(edges, trace, "from_task", "from_kernel")
        pair = ("rank", "from_kernel", "kernel")
        worst = pl.all().exclude(pair).sort_by("early_ns", -pl.col("ts_ns"), *TASK, "from_task")
        broken = (
            edges.with_columns(num_edges=pl.len().over(pair))
            .filter(pl.col("early_ns") >= self.early_ns)
            .group_by(pair)
            .agg(worst.last(), count=pl.len())
        )
        found = _with_last_block(broken.collect().lazy(), holds(trace))
        named = with_label(found.collect().lazy(), trace)
        named = with_label(named, trace, "from_task", "from_block", "from_label")
        has_clock = pl.lit(trace.manifest.clock.has_times)
        rows = named.sort(-pl.col("count").cast(pl.Int64), *pair).with_columns(has_clock=has_clock)
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _any(self, trace: Trace) -> bool:
        """Whether any edge is broken, which is cheaper to say than which: mostly none is.

        Tasks are told apart by a hash, as one number is grouped and joined twice as fast as two;
        should two tasks share one, an edge may look broken that is not.
        """
        known = _lasted(holds(trace), _number("task")).collect().lazy()
        edges = trace.task_edges.select(start=_number("from_task"), task=_number("to_task"))
        later = edges.join(known.select("task", "began_ns"), on="task", how="inner")
        ended = _ended(known, trace, _number("task")).select("ended_ns", start="task")
        early_ns = pl.col("ended_ns") - pl.col("began_ns")
        broken = later.collect().lazy().join(ended.collect().lazy(), on="start", how="inner")
        return bool(broken.select((early_ns >= self.early_ns).any()).collect().item())

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        never = row["ended_ns"] >= FAR_NS
        worst = ", and it never ended" if never else ""
        if row["has_clock"] and not never:
            worst = f", by {duration(row['early_ns'])} at worst"
        message = (
            f"{row['kernel']} began before {row['from_kernel']} had ended, on {row['count']:,} of "
            f"{times(row['num_edges'], 'edge')}{worst}"
        )
        evidence: Evidence = {
            "began": row["label"],
            "had not ended": row["from_label"],
            "worst_early_ns": row["early_ns"] if row["has_clock"] and not never else None,
            "edge": row["source"],
            "edges broken": row["count"],
            "edges of the pair": row["num_edges"],
        }
        at = {**row, "end_ns": None if never else row["ended_ns"]}
        return finding(self, message, FIX, at=at, evidence=evidence, count=row["count"])


def _number(task: str) -> pl.Expr:
    """A task of a rank as one number."""
    return pl.struct("rank", pl.col(task).alias("task")).hash().alias("task")


def _edges(trace: Trace) -> pl.LazyFrame:
    """Each edge once, with the later task's first block and when the earlier one ended."""
    spans = holds(trace)
    first = pl.col("step", "block", "core", "group", "ts_ns").sort_by("ts_ns", "block", "core")
    began = spans.group_by(TASK).agg(first.first())
    edges = trace.task_edges.group_by("rank", "from_task", to_task="to_task").agg(
        pl.col("source").min()
    )
    # Two joins that are collected one by one: as one plan, Polars may join on the rank alone first.
    later = edges.rename({"to_task": "task"}).join(began, on=TASK, how="inner").collect().lazy()
    ended = _ended(_lasted(spans, *TASK), trace, *TASK).rename({"task": "from_task"})
    return later.join(ended.collect().lazy(), on=["rank", "from_task"], how="inner").with_columns(
        early_ns=pl.col("ended_ns") - pl.col("ts_ns")
    )


def _lasted(spans: pl.LazyFrame, *task: str | pl.Expr) -> pl.LazyFrame:
    """When the first block of each task began, and the last one ended: began_ns, ended_ns."""
    return spans.group_by(task).agg(began_ns=pl.col("ts_ns").min(), ended_ns=pl.col("end_ns").max())


def _ended(lasted: pl.LazyFrame, trace: Trace, *task: str | pl.Expr) -> pl.LazyFrame:
    """When each task ended: its last block, or else its retirement."""
    retired = pl.col("retired_ns").clip(-FAR_NS, FAR_NS)
    pending = pl.when(pl.col("outcome") == "pending").then(FAR_NS)
    moment = pl.coalesce(retired, pending) if trace.manifest.is_whole("tasks") else retired
    on_cores = lasted.drop("began_ns")
    key = [name for name in on_cores.collect_schema() if name != "ended_ns"]
    elsewhere = (
        trace.tasks.select(*task, ended_ns=moment)
        .drop_nulls("ended_ns")
        .join(on_cores, on=key, how="anti")
        .group_by(key)
        .agg(pl.col("ended_ns").max())
    )
    ended = pl.concat([on_cores, elsewhere])
    if trace.manifest.is_whole("core_spans"):
        return ended
    return ended.filter(pl.col("ended_ns") < FAR_NS)


def _with_last_block(edges: pl.LazyFrame, spans: pl.LazyFrame) -> pl.LazyFrame:
    """Add from_block, the block of the earlier task that ended last."""
    last = pl.col("block").sort_by("end_ns", "block").last()
    of_edges = spans.rename({"task": "from_task"}).join(edges, on=["rank", "from_task"], how="semi")
    blocks = of_edges.group_by("rank", "from_task").agg(from_block=last)
    return edges.join(blocks, on=["rank", "from_task"], how="left")
