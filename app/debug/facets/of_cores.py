"""Core groups at a position: cores, the tasks that are ready, and threads of the scheduler."""

from __future__ import annotations

import polars as pl

from stepscope.app.debug.facets.look import Facet, Look
from stepscope.app.debug.held.device_cores import ring_sizes
from stepscope.app.debug.names import core_names, names_in


def _cores(look: Look) -> pl.DataFrame | None:
    cores = look.state.cores
    if cores is None:
        return None
    debugger = look.debugger
    known = core_names(debugger.trace, debugger.rank)
    names = names_in(debugger.trace, debugger.rank, known, [look.state])
    rows = [
        {
            "core": core, "name": names.core(core), "state": slots.state,
            "running": None if slots.running is None else names.block(slots.running),
            "pending": None if slots.pending is None else names.block(slots.pending),
        }
        for core, slots in sorted(cores.items())
    ]  # fmt: skip
    texts = dict.fromkeys(("name", "state", "running", "pending"), pl.String)
    return pl.DataFrame(rows, schema={"core": pl.Int64, **texts})


def _ready(look: Look) -> pl.DataFrame | None:
    """Tasks whose predecessors have ended, and of which not all blocks were given to a core."""
    given = pl.coalesce("claim_ns", "dispatch_ns", "ts_ns") <= look.ts_ns
    blocks = (
        _given(look)
        .filter(given)
        .group_by("task")
        .agg(given=pl.col("block").n_unique().cast(pl.Int64))
    )
    is_to_run = ~pl.col("outcome").is_in(["skipped", "dummy"]).fill_null(value=False)
    queued_ns = pl.coalesce("queued_ns", "ready_ns")
    is_ready = (queued_ns <= look.ts_ns) & (pl.col("shape") != "DUMMY") & is_to_run
    joined = look.then("tasks").filter(is_ready).join(blocks, on="task", how="left")
    left = pl.col("num_blocks").cast(pl.Int64) - pl.col("given").fill_null(0)
    waits = joined.with_columns(left=left, waits_ns=look.ts_ns - queued_ns, queued_ns=queued_ns)
    columns = ("task", "name", "shape", "num_blocks", "left", "waits_ns")
    return waits.filter(pl.col("left") > 0).sort("queued_ns", "task").select(columns).collect()


def _threads(look: Look) -> pl.DataFrame | None:
    """What each thread has taken cores for and not dispatched yet, and what it dispatched last.

    When it polls, completes blocks or sleeps is not recorded, nor is any of it in older traces.
    """
    told = _given(look).drop_nulls("thread")
    if not len(told.head(1).collect()):
        return None
    at_ns = pl.coalesce("dispatch_ns", "ts_ns")
    then = told.filter(at_ns <= look.ts_ns).sort(at_ns, maintain_order=True)
    columns = ("task", "block", "shape", "group", "core")
    last = then.group_by("thread").agg(pl.col(columns).last(), num_dispatched=pl.len())
    is_known = pl.col("claim_ns").is_not_null().all()
    prepares = (pl.col("claim_ns") <= look.ts_ns) & (at_ns > look.ts_ns)
    num_preparing = pl.when(is_known).then(prepares.sum())
    every = told.group_by("thread").agg(num_preparing=num_preparing)
    return every.join(last, on="thread", how="left").sort("thread").collect()


def _given(look: Look) -> pl.LazyFrame:
    """All blocks that were given to cores, those that never began there included."""
    columns = ("thread", "task", "block", "shape", "group", "core", "claim_ns")
    began = look.rows("core_spans").select(*columns, "dispatch_ns", "ts_ns")
    never = look.rows("core_waits").select(
        *columns, dispatch_ns="ts_ns", ts_ns=pl.lit(None, pl.Int64)
    )
    return pl.concat([began, never])


def _rings(look: Look) -> pl.DataFrame | None:
    """What the step's tasks hold of each ring that are submitted and not reclaimed.

    Each step's graph has rings of its own.
    """
    if not len(look.rows("tasks").drop_nulls("heap_bytes").head(1).collect()):
        return None
    tasks = look.now("tasks").drop_nulls("heap_bytes")
    is_over = (pl.col("reclaimed_ns") <= look.ts_ns).fill_null(value=False)
    holding = tasks.filter(pl.col("ts_ns") <= look.ts_ns, ~is_over)
    entries = look.rows("task_edges").join(holding, left_on="to_task", right_on="task", how="semi")
    num_tasks, num_bytes = holding.select(pl.len(), pl.col("heap_bytes").sum()).collect().row(0)
    held = {
        "task slots": num_tasks,
        "heap bytes": num_bytes,
        "dependency entries": entries.select(pl.len()).collect().item(),
    }
    sizes = ring_sizes(look.debugger.trace.manifest)
    rows = [(ring, num, sizes.get(ring)) for ring, num in held.items()]
    schema = {"ring": pl.String, "held": pl.Int64, "size": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


OF_CORES: tuple[Facet, ...] = (
    Facet("cores", "what each core executes, and what is behind that", ("core_spans",), "core",
          _cores),
    Facet("ready", "tasks that could run, with blocks that no core has", ("tasks", "core_spans"),
          "task", _ready),
    Facet("threads", "what each thread of the scheduler prepares, and dispatched last",
          ("core_spans",), "thread", _threads),
    Facet("rings", "what is held of each ring that bounds how far tasks are submitted", ("tasks",),
          "ring", _rings),
)  # fmt: skip
