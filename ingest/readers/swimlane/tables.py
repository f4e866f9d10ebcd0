"""The tables of a swimlane folder: what its records say, and what follows from them.

Recorded are the core, start, end, dispatch and task of each block, and the edges. Three things
follow: a block's shape (from the kernels of its task), its group (from the core's number), and when
its task was ready (submitted, and all that it waits for ended). One is a guess: which block of its
task it was, by order of dispatch; of a MIX, the parts that a group got together are one block.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.ingest.readers.core_masks import SHAPE_OF
from stepscope.ingest.readers.swimlane import decode
from stepscope.ingest.readers.swimlane.decode import Json, Tally, in_ns
from stepscope.ingest.readers.swimlane.rings import first_ns, rings, scope_slices

QUEUES = ("AIC", "AIV", "MIX")


def tables(
    found: Json, deps: Json, names: Mapping[int, str], scopes: list[Json], tally: Tally
) -> dict[str, pl.DataFrame]:
    """All tables that have rows; `names` are those of kernels."""
    metadata = found.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    hz = decode.clock_hz(metadata, tally) if found else decode.UNKNOWN_HZ
    spans = _in_ns(decode.core_spans(found, tally), hz, tally)
    cores = decode.cores(metadata, tally if found else Tally())
    spans = spans.join(cores, on="core", how="left")
    phases = _in_ns(decode.phases(found, tally), hz, tally)
    submits = _in_ns(decode.submits(found, tally), hz, tally)
    edges = decode.edges(deps, tally)
    listed = _tasks(decode.tasks(deps, tally), spans, tally)
    ended = _ended(listed, spans, phases, submits)
    ready = _ready(listed, ended, edges, submits, knows_edges=bool(deps))
    listed = listed.join(ready, on="task", how="left")
    named = _named(listed, names)
    made = {
        "tasks": _task_table(named, ended, submits, phases, spans),
        "core_spans": _span_table(spans, listed, tally),
        "task_edges": _edge_table(edges, submits),
        "spans": _slice_table(phases, submits, named, scopes),
        "counters": pl.concat([_queue_lengths(phases), rings(scopes, submits, tally)]),
    }
    return {name: table for name, table in made.items() if len(table)}


def _in_ns(frame: pl.DataFrame, hz: int, tally: Tally) -> pl.DataFrame:
    times = [name for name in ("start", "end", "dispatch", "finish") if name in frame.columns]
    kept = frame.with_columns(in_ns(name, hz) for name in times).drop_nulls(["start", "end"])
    if len(kept) < len(frame):
        tally.skipped["records too far in time"] += len(frame) - len(kept)
    return kept


def _tasks(listed: pl.DataFrame, spans: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    """The listed tasks, and those that ran and are not listed, their shape seen on their cores."""
    kind = pl.col("core_kind").replace_strict(
        {"AIC": 1, "AIV0": 2, "AIV1": 4}, default=None, return_dtype=pl.Int32
    )
    # A task that ran on AIVs only may have used either: that it took both at once is not known.
    both = pl.when((kind == 1).any()).then(kind.unique().sum()).otherwise(pl.lit(2, pl.Int32))
    unlisted = (
        spans.join(listed, on="task", how="anti")
        .drop_nulls("core_kind")
        .group_by("task")
        .agg(mask=both.cast(pl.Int32))
        .sort("task")
    )
    if len(unlisted):
        tally.inferred["shapes of tasks from the cores that they ran on"] += len(unlisted)
    shape = pl.col("mask").replace_strict(SHAPE_OF, default="MIX", return_dtype=pl.String)
    return pl.concat([listed, unlisted], how="diagonal").with_columns(shape=shape)


def _ended(
    listed: pl.DataFrame, spans: pl.DataFrame, phases: pl.DataFrame, submits: pl.DataFrame
) -> pl.DataFrame:
    """When each task ended: its last block, its own phase (a dummy, a skip), or its submission.

    The last is for what the orchestrator does itself, such as to allocate: it is in no list.
    """
    on_cores = spans.group_by("task").agg(pl.col("end").max())
    passed = phases.drop_nulls("task").group_by("task").agg(pl.col("end").max())
    alone = submits.join(listed, on="task", how="anti").group_by("task").agg(pl.col("end").max())
    return pl.concat([on_cores, passed, alone]).group_by("task").agg(pl.col("end").max())


def _ready(
    listed: pl.DataFrame,
    ended: pl.DataFrame,
    edges: pl.DataFrame,
    submits: pl.DataFrame,
    *,
    knows_edges: bool,
) -> pl.DataFrame:
    """When a task was submitted and all before it had ended; null if either is not known."""
    submitted = submits.select("task", submitted="end").unique("task", keep="first")
    before = (
        edges.join(ended.rename({"task": "from_task"}), on="from_task", how="left")
        .group_by(task="to_task")
        .agg(before=pl.col("end").max(), is_known=pl.col("end").is_not_null().all())
    )
    ready = pl.max_horizontal("submitted", "before")
    waits_known = pl.col("is_known").fill_null(value=True) & knows_edges
    known = pl.col("submitted").is_not_null() & waits_known
    return (
        listed.select("task")
        .join(submitted, on="task", how="left")
        .join(before, on="task", how="left")
        .select("task", "submitted", ready_ns=pl.when(known).then(ready))
    )


def _named(listed: pl.DataFrame, names: Mapping[int, str]) -> pl.DataFrame:
    """Add `name`: that of a task's kernels, one for each kind of core that it needs."""

    def name(kernels: list[int] | None) -> str | None:
        words = dict.fromkeys(names.get(kernel, f"kernel {kernel}") for kernel in kernels or ())
        return " + ".join(words) or None

    called = [name(kernels) for kernels in listed["kernels"].to_list()]
    named = pl.Series("name", called, pl.String)
    is_dummy = pl.col("shape") == "DUMMY"
    return listed.with_columns(named).with_columns(
        name=pl.coalesce("name", pl.when(is_dummy).then(pl.lit("dummy")))
    )


def _task_table(
    named: pl.DataFrame,
    ended: pl.DataFrame,
    submits: pl.DataFrame,
    phases: pl.DataFrame,
    spans: pl.DataFrame,
) -> pl.DataFrame:
    is_recorded = len(spans) + len(submits) + len(phases) > 0
    somewhen = pl.lit(first_ns(spans, submits) if is_recorded else None, pl.Int64)
    first = spans.group_by("task").agg(first=pl.col("start").min())
    passed = phases.drop_nulls("task").select("task", is_passed=True).unique()
    is_dummy = pl.col("shape") == "DUMMY"
    outcome = (
        pl.when(is_dummy & (pl.col("is_passed") | pl.col("retired_ns").is_not_null()))
        .then(pl.lit("dummy"))
        .when(pl.col("first").is_not_null())
        .then(pl.lit("run"))
        .when("is_passed")
        .then(pl.lit("skipped"))
        .otherwise(pl.lit("pending" if is_recorded else None, pl.String))
    )
    return (
        named.join(ended.rename({"end": "retired_ns"}), on="task", how="left")
        .join(first, on="task", how="left")
        .join(passed, on="task", how="left")
        .select(
            "task", "name", "shape", "ready_ns", "retired_ns",
            ts_ns=pl.coalesce("submitted", "first", "retired_ns", somewhen),
            core_mask="mask",
            num_blocks=pl.col("num_blocks").cast(pl.Int32),
            outcome=outcome,
        )
    )  # fmt: skip


def _span_table(spans: pl.DataFrame, listed: pl.DataFrame, tally: Tally) -> pl.DataFrame:
    of_task = listed.select("task", "shape", "ready_ns")
    order = ("dispatch", "start", "core")
    turn = pl.int_range(pl.len()).over("task", "core")
    first = pl.col("dispatch").fill_null(pl.col("start")).min().over("task", "group", "turn")
    place = pl.struct("first", "group", "turn").rank("dense").over("task").cast(pl.Int64) - 1
    one_by_one = pl.int_range(pl.len()).over("task")
    is_mix = pl.col("shape") == "MIX"
    tally.inferred["block numbers from the order of dispatch"] += len(spans)
    return (
        spans.join(of_task, on="task", how="left")
        .sort("task", *order)
        .with_columns(turn=turn)
        .with_columns(first=first)
        .with_columns(block=pl.when(is_mix).then(place).otherwise(one_by_one).cast(pl.Int32))
        .sort("start", "core")
        .select(
            "task", "block", "shape", "group", "core", "core_kind", "ready_ns", "thread",
            ts_ns="start", dispatch_ns="dispatch", end_ns="end",
        )
    )  # fmt: skip


def _edge_table(edges: pl.DataFrame, submits: pl.DataFrame) -> pl.DataFrame:
    found = submits.select(to_task="task", ts_ns="end").unique("to_task", keep="first")
    return edges.join(found, on="to_task", how="left", maintain_order="left")


def _slice_table(
    phases: pl.DataFrame, submits: pl.DataFrame, named: pl.DataFrame, scopes: list[Json]
) -> pl.DataFrame:
    """What scheduler threads and the orchestrator did, as slices on tracks of their own."""
    done = phases.select(
        "start", "end", "task", "kind", "args", track=pl.format("AICPU / scheduler {}", "thread")
    )
    sent = submits.select(
        "start", "end", "task", kind=pl.lit("submit"), args="args",
        track=pl.format("AICPU / orchestrator {}", "thread"),
    )  # fmt: skip
    named_tasks = named.select("task", "name")
    slices = pl.concat([done, sent]).join(named_tasks, on="task", how="left", maintain_order="left")
    told = slices.select(
        "track",
        "args",
        ts_ns="start",
        dur_ns=pl.col("end") - pl.col("start"),
        name=pl.coalesce(pl.format("{} {}", "kind", "name"), "kind"),
        category=pl.col("kind"),
        form=pl.lit("slice"),
    )
    both = pl.concat([told, scope_slices(scopes, submits)], how="diagonal")
    return both.with_columns(span=pl.int_range(pl.len(), dtype=pl.Int64))


def _queue_lengths(phases: pl.DataFrame) -> pl.DataFrame:
    """The shared ready queues, as each phase found them."""
    known = phases.drop_nulls("queues")
    return pl.concat(
        known.select(
            ts_ns="start",
            track=pl.lit("ready queues"),
            name=pl.lit(f"ready {shape}"),
            unit=pl.lit("tasks"),
            value=pl.col("queues").list.get(place).cast(pl.Float64),
        )
        for place, shape in enumerate(QUEUES)
    )
