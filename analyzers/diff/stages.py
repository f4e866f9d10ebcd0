"""What of a step is compared between two runs, in the order in which one thing follows another.

First a batch is formed, then it runs, then its results are taken. Times are not compared: a run
that takes longer decides no differently because of that, until somebody arrives a step later. KV
blocks are compared up to their numbers, which say nothing but which of them was free.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.ingest.trace import Trace

STEP = ("rank", "step")
ABOUT_TASKS = pl.col("subject_kind") == "task"
# Who is let in is compared by its moves: not every recording decides it in so many words.
LETS_IN = (pl.col("subject_kind") == "request") & (pl.col("verdict") == "admitted")
EVENT = pl.col("event")
IS_KV = pl.col("resource").is_in(["kv-block", "kv-token"])
KV_BLOCKS = "KV blocks"
NTH = "_nth"
ENDING = ("first-token", "finish", "abort", "error")


@dataclass(frozen=True)
class Stage:
    """Rows of `table` that `only` keeps: `columns` are compared, in the order of `by`.

    Without `by` their order says nothing: they are compared as a set. Rows of one moment that were
    recorded together stay in the order of recording. The values of `numbered` are compared by the
    order in which they first occur in a trace, and not by themselves.
    """

    name: str
    table: str
    columns: tuple[str, ...]
    by: tuple[str, ...] = ()
    only: pl.Expr | None = None
    numbered: str = ""

    @property
    def compared(self) -> tuple[str, ...]:
        """The columns of `rows` by which they are compared."""
        return tuple(NTH if name == self.numbered else name for name in self.columns)

    @property
    def selected_by(self) -> tuple[str, ...]:
        """The columns that say which rows of the table are the stage's, and in which step."""
        names = () if self.only is None else tuple(self.only.meta.root_names())
        return ("step", *dict.fromkeys(names), *([self.numbered] if self.numbered else []))

    def rows(self, trace: Trace) -> pl.LazyFrame:
        """The trace's rows of the stage, as they were recorded."""
        kept = trace.table(self.table).filter(pl.col("step").is_not_null())
        kept = kept if self.only is None else kept.filter(self.only)
        return _numbered(kept, self.numbered) if self.numbered else kept

    def in_order(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Rows of the stage, sorted; `place` counts them from 0 in each step."""
        order = self.by or self.compared
        ordered = rows.sort(*STEP, *order, nulls_last=True, maintain_order=True)
        return ordered.with_columns(place=pl.int_range(pl.len()).over(STEP))


STAGES: tuple[Stage, ...] = (
    Stage("decisions", "decisions", ("subject_kind", "subject", "verdict", "resource"),
          only=~(ABOUT_TASKS | LETS_IN)),
    Stage("moves", "lifecycle", ("event", "request"), ("ts_ns",),
          ~EVENT.is_in([*ENDING, "arrive"])),
    Stage("batch", "batch_rows", ("request", "phase", "num_tokens", "slot"), ("row",)),
    Stage("batch sizes", "steps", ("kind", "num_prefill_reqs", "num_decode_reqs",
          "num_prefill_tokens", "num_decode_tokens")),
    Stage("allocations", "allocations", ("op", "resource", "id", "owner"), ("ts_ns",), ~IS_KV),
    Stage(KV_BLOCKS, "allocations", ("op", "resource", "id", "owner"), ("ts_ns",), IS_KV,
          numbered="id"),
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


def first_steps(stage: Stage, a: Trace, b: Trace, began: int) -> pl.DataFrame:
    """The first step of each rank in which the stage's rows differ: rank, step, in step order.

    Before the step `began` is one thing, from it on another: a rank may have a row for both.
    """
    period = pl.col("step") < began
    known = [stage.rows(each).with_columns(_is_before=period) for each in (a, b)]
    until = _until(stage, *known).collect().lazy()
    columns = [*STEP, "_is_before", "place", *stage.compared]
    ours, theirs = (
        stage.in_order(_up_to(rows, until)).select(columns).with_columns(_is_in=pl.lit(1))
        for rows in known
    )
    here = pl.col("_is_in").is_null() | pl.col("_is_in_b").is_null()
    differs = pl.any_horizontal(
        here, *(pl.col(name).ne_missing(pl.col(f"{name}_b")) for name in stage.compared)
    )
    key = [*STEP, "_is_before", "place"]
    return (
        ours.join(theirs, on=key, how="full", coalesce=True, suffix="_b")
        .filter(differs)
        .group_by("rank", "_is_before")
        .agg(pl.col("step").min())
        .select("rank", "step")
        .sort("step", "rank")
        .collect()
    )


def _until(stage: Stage, ours: pl.LazyFrame, theirs: pl.LazyFrame) -> pl.LazyFrame:
    """A step in which each rank's rows do differ, in whatever order; no later one is looked at."""
    said = pl.struct(stage.compared).hash().sum()
    step = [*STEP, "_is_before"]
    in_a, in_b = (rows.group_by(step).agg(said=said) for rows in (ours, theirs))
    return (
        in_a.join(in_b, on=step, how="full", coalesce=True, suffix="_b")
        .filter(pl.col("said").ne_missing(pl.col("said_b")))
        .group_by("rank", "_is_before")
        .agg(_until=pl.col("step").min())
    )


def _up_to(rows: pl.LazyFrame, until: pl.LazyFrame) -> pl.LazyFrame:
    bounded = rows.join(until, on=["rank", "_is_before"], how="left", maintain_order="left")
    return bounded.filter((pl.col("step") <= pl.col("_until")).fill_null(value=True))


def _numbered(rows: pl.LazyFrame, column: str) -> pl.LazyFrame:
    """Add how many others of its rank and resource had occurred before each value first did."""
    key = ["rank", "resource", column]
    firsts = rows.sort("rank", "ts_ns", maintain_order=True).unique(
        key, keep="first", maintain_order=True
    )
    places = pl.int_range(pl.len()).over("rank", "resource")
    nth = firsts.select(*key, places.alias(NTH))
    return rows.join(nth, on=key, how="left", maintain_order="left")


def renumbered(a: Trace, b: Trace, firsts: pl.DataFrame) -> int:
    """How many KV blocks have another number in B, before the steps `firsts` where they differ."""
    (stage,) = (each for each in STAGES if each.name == KV_BLOCKS)
    differs = firsts.lazy().select("rank", differs="step")
    key = ["rank", "resource", NTH]
    ours, theirs = (
        stage.rows(each)
        .join(differs, on="rank", how="left")
        .filter((pl.col("step") < pl.col("differs")).fill_null(value=True))
        .select(*key, "id")
        .unique()
        for each in (a, b)
    )
    both = ours.join(theirs, on=key, suffix="_b")
    return int(both.select((pl.col("id") != pl.col("id_b")).sum()).collect().item())
