"""When the device executed what each step launched, and how long a step is with that."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.ingest.derive.launches import launch_notes, of_host, on_device, tag_spans
from stepscope.ingest.derive.steps import infer_steps


def derived_steps(spans: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, Iterator[str]]:
    """Steps by their tags, with their times on CPU and GPU; spans with their step; and notes.

    The steps have the columns of `steps` but rank.
    """
    steps = infer_steps(spans)
    tagged = tag_spans(spans, steps)
    return with_gpu_times(steps, tagged).drop("span"), tagged, launch_notes(tagged, steps)


def with_gpu_times(steps: pl.DataFrame, spans: pl.DataFrame) -> pl.DataFrame:
    """Steps that last until the last of what they launched has ended; adds the GPU's columns.

    `spans` have the step that launched them. Of a step that launched nothing which the file has,
    nothing is known on the GPU: its columns are null.
    """
    length = (pl.col("gpu_end_ns") - pl.col("ts_ns")).clip(lower_bound=0)
    cpu_dur = pl.when(of_host(spans["category"].gather(steps["span"]))).then("dur_ns")
    last = pl.max_horizontal("dur_ns", length)
    return (
        steps.drop("cpu_dur_ns", "gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns")
        .join(_by_step(spans), on="step", how="left", maintain_order="left")
        .with_columns(
            cpu_dur_ns=cpu_dur,
            gpu_dur_ns=pl.col("gpu_end_ns") - pl.col("gpu_ts_ns"),
            dur_ns=pl.when(pl.col("dur_ns").is_not_null()).then(last),
        )
        .drop("gpu_end_ns")
    )


def gpu_times(spans: pl.DataFrame) -> pl.DataFrame:
    """When the GPU executed what each step launched: rank, step and the GPU's columns of `steps`.

    `spans` are of several ranks, and have the step that launched them.
    """
    parts = [
        _by_step(own).with_columns(pl.lit(rank, pl.Int32).alias("rank"))
        for (rank,), own in spans.group_by("rank", maintain_order=True)
    ]
    told = pl.concat(
        [_by_step(spans.clear()).with_columns(pl.lit(0, pl.Int32).alias("rank")), *parts]
    )
    return told.drop_nulls("step").select(
        "rank", "step", "gpu_ts_ns",
        gpu_dur_ns=pl.col("gpu_end_ns") - pl.col("gpu_ts_ns"), gpu_busy_ns="gpu_busy_ns",
    )  # fmt: skip


def _by_step(spans: pl.DataFrame) -> pl.DataFrame:
    """When each step's kernels and copies began, ended, and how long any of them ran."""
    ran = spans.select("step", "ts_ns", "dur_ns").filter(on_device(spans["category"]))
    reached = pl.col("end_ns").cum_max().shift(1).over("step").fill_null(pl.col("ts_ns"))
    alone = pl.col("end_ns") - pl.max_horizontal("ts_ns", "reached")
    return (
        ran.drop_nulls()
        .with_columns(end_ns=pl.col("ts_ns") + pl.col("dur_ns"))
        .sort("step", "ts_ns")
        .with_columns(reached=reached)
        .group_by("step")
        .agg(
            gpu_ts_ns=pl.col("ts_ns").min(),
            gpu_end_ns=pl.col("end_ns").max(),
            gpu_busy_ns=alone.clip(lower_bound=0).sum(),
        )
    )
