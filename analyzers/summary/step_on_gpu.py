"""What the GPU executed of a step: how long it was in what, and which kernels."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.analyzers.latency.gpu_time import of_gpu, times, with_kinds
from stepscope.analyzers.summary.gpu_use import by_kind, kernel_sums
from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class StepOnGpu:
    """What a step launched, on all devices of its rank, from its first begin to its last end.

    `use` has of that time, in ns, gemm_ns to copy_ns (see KINDS: of what ran at the same time, the
    first), busy_ns, which these add up to, idle_ns and window_ns, which is all of it. `kernels` are
    as in `kernel_sums`, of this step alone.
    """

    use: dict[str, int]
    kernels: pl.DataFrame


def step_on_gpu(trace: Trace, rank: int, step: int) -> StepOnGpu | None:
    """What the GPU executed of a step; None where the trace has nothing that it launched there."""
    if not trace.has("spans"):
        return None
    is_own = pl.col("rank") == rank, pl.col("step") == step, pl.col("ts_ns").is_not_null()
    own = trace.spans.filter(*is_own).select("name", "category", "ts_ns", "dur_ns").collect()
    ran = of_gpu(own.lazy()).collect()  # of a step's rows alone, text is compared
    if ran.is_empty():
        return None
    of_kind = with_kinds(
        ran.select("name", "category", *times(), rank=pl.lit(rank, pl.Int32))
    ).lazy()
    window = of_kind.select(pl.col("rank").first(), pl.col("from_ns").min(), pl.col("to_ns").max())
    (use,) = by_kind(window, of_kind).drop("rank").to_dicts()
    return StepOnGpu(use, kernel_sums(ran.lazy()))
