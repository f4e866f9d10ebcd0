"""What of a step is compared between two runs, in the order in which one thing follows another.

First a batch is formed, then it runs, then its results are taken. Times are not compared: a run
that takes longer decides no differently because of that, until somebody arrives a step later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

STEP = ("rank", "step")
ABOUT_TASKS = pl.col("subject_kind") == "task"
EVENT = pl.col("event")
ENDING = ("first-token", "finish", "abort")


@dataclass(frozen=True)
class Stage:
    """Rows of `table` that `only` keeps: `columns` are compared, in the order of `by`.

    Without `by` their order says nothing: they are compared as a set. Rows of one moment that were
    recorded together stay in the order of recording.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    by: tuple[str, ...] = ()
    only: pl.Expr | None = None

    def rows(self, trace: Trace) -> pl.LazyFrame:
        """The trace's rows of the stage, in order; `place` counts them from 0 in each step."""
        kept = trace.table(self.table).filter(pl.col("step").is_not_null())
        kept = kept if self.only is None else kept.filter(self.only)
        order = self.by or self.columns
        ordered = kept.sort(*STEP, *order, nulls_last=True, maintain_order=True)
        return ordered.with_columns(place=pl.int_range(pl.len()).over(STEP))


STAGES: tuple[Stage, ...] = (
    Stage("decisions", "decisions", ("subject_kind", "subject", "verdict", "resource"),
          only=~ABOUT_TASKS),
    Stage("moves", "lifecycle", ("event", "request"), ("ts_ns",),
          ~EVENT.is_in([*ENDING, "arrive"])),
    Stage("batch", "batch_rows", ("request", "phase", "num_tokens", "slot"), ("row",)),
    Stage("batch sizes", "steps", ("kind", "num_prefill_reqs", "num_decode_reqs",
          "num_prefill_tokens", "num_decode_tokens")),
    Stage("allocations", "allocations", ("op", "resource", "id", "owner"), ("ts_ns",)),
    Stage("segments", "segments", ("segment", "phase", "num_rows", "num_tokens"), ("segment",)),
    Stage("placement", "core_spans", ("task", "block", "shape", "group", "core", "slot"),
          ("dispatch_ns", "task", "block", "core")),
    Stage("task decisions", "decisions", ("subject", "verdict"), only=ABOUT_TASKS),
    Stage("collectives", "collectives", ("op", "command", "slot", "num_elements", "group"),
          ("stream", "ordinal", "ts_ns")),
    Stage("accesses", "accesses", ("op", "buffer", "first", "last", "stream", "segment", "event"),
          ("ts_ns",)),
    Stage("path", "steps", ("executed_path",)),
    Stage("outputs", "outputs", ("request", "position", "token"), ("ts_ns",)),
    Stage("ends", "lifecycle", ("event", "request"), ("ts_ns",), EVENT.is_in(ENDING)),
    Stage("arrivals", "lifecycle", ("request",), ("ts_ns",), EVENT == "arrive"),
)  # fmt: skip


def first_steps(stage: Stage, a: Trace, b: Trace, began: int) -> pl.LazyFrame:
    """The first step of each rank in which the stage's rows differ: rank, step, in step order.

    Before the step `began` is one thing, from it on another: a rank may have a row for both.
    """
    columns = [*STEP, "place", *stage.columns]
    ours, theirs = (stage.rows(each).select(columns) for each in (a, b))
    key = [*STEP, "place"]
    here = pl.col("_in_a").is_null() | pl.col("_in_b").is_null()
    differs = pl.any_horizontal(
        here, *(pl.col(name).ne_missing(pl.col(f"{name}_b")) for name in stage.columns)
    )
    return (
        ours.with_columns(_in_a=pl.lit(1))
        .join(
            theirs.with_columns(_in_b=pl.lit(1)), on=key, how="full", coalesce=True, suffix="_b"
        )
        .filter(differs)
        .group_by("rank", _is_before=pl.col("step") < began)
        .agg(pl.col("step").min())
        .select("rank", "step")
        .sort("step", "rank")
    )  # fmt: skip
