"""What a profile tells of its GPUs, and what it leaves out, in a line each."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analyzers.findings.wording import duration, times
from stepscope.ingest.trace import Trace

MOST_KINDS = 5
INFERRED = "what a kernel was for is inferred from its name; of two at once, the first cause counts"


def gpu_notes(trace: Trace, ran: pl.DataFrame) -> Iterator[str]:
    """How long steps of each kind took with their kernels, and which of these belong to none."""
    profiled = trace.steps.filter(pl.col("inferred").is_not_null()).collect()
    has_gpu = pl.col("rank").is_in(ran["rank"].unique().implode())
    if not profiled.filter(~has_gpu, pl.col("cpu_dur_ns").is_not_null()).is_empty():
        yield "no kernel is in the profile: steps are as long as the CPU was in them"
    if not ran.is_empty():
        yield from _of_steps(profiled.filter(has_gpu), ran)
        yield INFERRED


def _of_steps(steps: pl.DataFrame, ran: pl.DataFrame) -> Iterator[str]:
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


def _by_kind(steps: pl.DataFrame) -> Iterator[str]:
    kind = pl.col("kind").fill_null("unknown")
    usual = steps.drop_nulls("dur_ns").group_by(kind, maintain_order=True)
    told = usual.agg(pl.len(), pl.col("dur_ns", "cpu_dur_ns", "gpu_busy_ns").median())
    for kind_of, count, took, cpu, busy in told.head(MOST_KINDS).iter_rows():
        on_cpu = "" if cpu is None else f", {duration(cpu)} of the CPU"
        on_gpu = "" if busy is None else f", {duration(busy)} of kernels and copies"
        yield (
            f"{_named(count, kind_of)}{', in the median' if count > 1 else ''}: {duration(took)} "
            f"until the last kernel ended{on_cpu}{on_gpu}"
        )


def _named(count: int, kind: str) -> str:
    of_unknown = f"{times(count, 'step')} of unknown kind"
    return of_unknown if kind == "unknown" else times(count, f"{kind} step")
