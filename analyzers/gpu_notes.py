"""What a profile tells of its GPUs, and what it leaves out, in a line each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl

from stepscope.analyzers.wording import duration, times

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

MOST_KINDS = 5


def gpu_notes(trace: Trace, ran: pl.DataFrame) -> Iterator[str]:
    """How long steps of each kind took with their kernels, and which of these belong to none."""
    if ran.is_empty():
        if trace.has("spans") and trace.has("steps"):
            yield "no kernel is in the profile: steps are as long as the CPU was in them"
        return
    steps = trace.steps.filter(pl.col("rank").is_in(ran["rank"].unique().implode())).collect()
    if steps.is_empty():
        return
    yield from _by_kind(steps.filter(pl.col("gpu_ts_ns").is_not_null()))
    if silent := int(steps["gpu_ts_ns"].null_count()):
        yield f"of {times(silent, 'step')} no kernel is in the profile: when these ended is unknown"
    if alone := int(ran["step"].null_count()):
        yield (
            f"{alone:,} of {len(ran):,} kernels and copies belong to no step; what they took "
            "counts all the same"
        )
    yield "what a kernel was for is told by its name; of two at a time, the first cause counts"


def _by_kind(steps: pl.DataFrame) -> Iterator[str]:
    kind = pl.col("kind").fill_null("unknown")
    sums = steps.group_by(kind, maintain_order=True).agg(
        pl.len(), pl.col("dur_ns", "cpu_dur_ns", "gpu_busy_ns").sum()
    )
    for kind_of, count, took, cpu, busy in sums.head(MOST_KINDS).iter_rows():
        yield (
            f"{_named(count, kind_of)}: {duration(took)} until the last kernel ended, "
            f"{duration(cpu)} of the CPU, kernels and copies for {duration(busy)}"
        )


def _named(count: int, kind: str) -> str:
    of_unknown = f"{times(count, 'step')} of unknown kind"
    return of_unknown if kind == "unknown" else times(count, f"{kind} step")
