"""Whether a replay decided as was recorded: batches, who was let in or thrown out, KV blocks.

Blocks are compared up to renaming: each is called by how many others had been claimed before it was
claimed for the first time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from stepscope.analyzers.diff.stages import Stage, first_steps
from stepscope.ingest.trace import Trace

EVENT, OP = pl.col("event"), pl.col("op")
STAGES: tuple[Stage, ...] = (
    Stage("preempted", "lifecycle", ("request",), ("ts_ns",), EVENT == "preempt"),
    Stage("let in", "lifecycle", ("request",), ("ts_ns",), EVENT.is_in(["admit", "resume"])),
    Stage("batch", "batch_rows", ("request", "num_tokens"), ("row",)),
    Stage("KV blocks", "allocations", ("op", "id", "owner"),
          only=(pl.col("resource") == "kv-block") & OP.is_in(["claim", "share", "release"])),
)  # fmt: skip
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first step of a replay that is another one than was recorded, and its rows in both."""

    step: int
    stage: str
    recorded: tuple[Row, ...]
    replayed: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    """How many steps were compared, how many batches were the same, and where they first differ.

    `not_compared` are the stages that the recorded trace does not tell of.
    """

    num_steps: int
    divergence: Divergence | None
    not_compared: tuple[str, ...]


def compare(recorded: Trace, replayed: Trace, rank: int) -> Compared:
    """Compare what a rank decided, step by step."""
    both = [_of_rank(each, rank) for each in (recorded, replayed)]
    told = [stage for stage in STAGES if recorded.has(stage.table)]
    firsts = [
        (int(first["step"].item()), order, stage)
        for order, stage in enumerate(told)
        if not (first := first_steps(stage, both[0], both[1], -(2**62)).head(1)).is_empty()
    ]
    steps = recorded.steps.filter(pl.col("rank") == rank).select(pl.len()).collect().item()
    not_compared = tuple(stage.name for stage in STAGES if stage not in told)
    if not firsts:
        return Compared(int(steps), None, not_compared)
    step, _, stage = min(firsts, key=lambda each: each[:2])
    rows = (_rows(stage, each, step) for each in both)
    return Compared(int(steps), Divergence(step, stage.name, *rows), not_compared)


def _of_rank(trace: Trace, rank: int) -> Trace:
    """The trace of one rank, its KV blocks called by the order of their first claim."""
    is_its = pl.col("rank") == rank
    tables = {"lifecycle", "batch_rows", "allocations"}
    frames = {name: trace.table(name).filter(is_its).with_columns(rank=pl.lit(0, pl.Int32))
              for name in tables}  # fmt: skip
    blocks = frames["allocations"].filter(pl.col("resource") == "kv-block")
    names = (
        blocks.sort("ts_ns", maintain_order=True).select(pl.col("id").unique(maintain_order=True))
        .with_row_index("name").with_columns(pl.col("name").cast(pl.Int64))
    )  # fmt: skip
    frames["allocations"] = (
        frames["allocations"].join(names, on="id", how="left", maintain_order="left")
        .with_columns(id=pl.coalesce("name", "id")).drop("name")
    )  # fmt: skip
    return trace.replacing(frames, trace.manifest)


def _rows(stage: Stage, trace: Trace, step: int) -> tuple[Row, ...]:
    here = stage.rows(trace).filter(pl.col("step") == step)
    return tuple(stage.in_order(here).select(stage.columns).collect().to_dicts())
