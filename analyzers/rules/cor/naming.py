"""What blocks and kernels are called, so that people know them: `qk_pv 7/8`, `qk_pv L* b*`.

Name what was found, not what was looked at: a frame is asked twice here, first for its tasks.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.findings.wording import NUMBER
from stepscope.ingest.trace import Trace


def with_label(
    frame: pl.LazyFrame,
    trace: Trace,
    task: str = "task",
    block: str = "block",
    into: str = "label",
) -> pl.LazyFrame:
    """Add `into`, a block's name: the kernel, the block from 0, and of how many it is one."""
    number = pl.col(block).cast(pl.String).fill_null("?")
    of = pl.format("{}/{}", number, "_num_blocks")
    label = pl.format("{} {}", _name(task), pl.coalesce(of, number))
    return _joined(frame, trace, task).with_columns(label.alias(into)).drop("_name", "_num_blocks")


def with_kernel(
    frame: pl.LazyFrame, trace: Trace, task: str = "task", into: str = "kernel"
) -> pl.LazyFrame:
    """Add `into`, the task's name with `*` for its numbers: one for all layers and batches."""
    kernel = _name(task).str.replace_all(NUMBER, "*").alias(into)
    return _joined(frame, trace, task).with_columns(kernel).drop("_name", "_num_blocks")


def with_name(frame: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add `name`, the task's name."""
    named = _joined(frame, trace, "task").with_columns(name=_name("task"))
    return named.drop("_name", "_num_blocks")


def _joined(frame: pl.LazyFrame, trace: Trace, task: str) -> pl.LazyFrame:
    wanted = frame.select("rank", task)
    tasks = (
        trace.tasks.select("rank", "name", "num_blocks", pl.col("task").alias(task))
        .join(wanted, on=["rank", task], how="semi", nulls_equal=True)
        .group_by("rank", task)
        .agg(_name=pl.col("name").min(), _num_blocks=pl.col("num_blocks").max())
    )
    return frame.join(tasks, on=["rank", task], how="left", nulls_equal=True)


def _name(task: str) -> pl.Expr:
    number = pl.col(task).cast(pl.String).fill_null("?")
    return pl.coalesce("_name", pl.format("task {}", number))
