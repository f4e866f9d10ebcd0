"""What the GPU executed of a step, as tables."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analyzers.summary.step_on_gpu import StepOnGpu
from stepscope.app.present.blocks import Table
from stepscope.app.present.summary.profile import MOST_KERNELS, by_shown_name, use_table
from stepscope.app.units import duration

ON_GPU, KERNELS = "on the GPU", "its kernels and copies"


def on_gpu_tables(told: StepOnGpu) -> tuple[Table, Table]:
    """What the GPU was in from the first of what the step launched to the last; its kernels."""
    ranked = by_shown_name(told.kernels)
    rows = tuple(
        (row["name"], row["num"], duration(row["total_ns"]), f"{row['share']:.1%}")
        for row in ranked.head(MOST_KERNELS).to_dicts()
    )
    columns = ("kernel", "count", "total", "share")
    kernels = Table(
        columns, rows, KERNELS, ("total", "share"), num_more=len(ranked) - len(rows)
    )  # fmt: skip
    return replace(use_table(told.use), title=ON_GPU), kernels
