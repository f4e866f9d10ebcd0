"""Core groups at a position: cores, the tasks that are ready, and threads of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from stepscope.app.debug.facets.look import Facet, Look
from stepscope.app.debug.held.device_cores import ring_sizes
from stepscope.app.debug.held.thread_phases import ORCHESTRATOR, thread_number
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
    """Who stands in which ready queue, in its order; of older traces who is ready, in none.

    What was not recorded is null: `queue` and `place` of a task, and `place` is from 0.
    """
    blocks = (
        _given(look)
        .filter(pl.coalesce("claim_ns", "dispatch_ns", "ts_ns") <= look.ts_ns)
        .group_by("task")
        .agg(given=pl.col("block").n_unique().cast(pl.Int64))
    )
    queued_ns = pl.coalesce("queued_ns", "ready_ns")
    left = pl.col("num_blocks").cast(pl.Int64) - pl.col("given").fill_null(0)
    tasks = look.then("tasks").join(blocks, on="task", how="left")
    told = tasks.with_columns(left=left, waits_ns=look.ts_ns - queued_ns, queued_ns=queued_ns)
    columns = ("queue", "place", "task", "name", "shape", "num_blocks", "left", "waits_ns")
    if look.state.ready is not None:
        places = _places(look.state.ready)
        found = places.lazy().join(told.drop("queue"), on="task", how="left", maintain_order="left")
        return found.select(columns).collect()
    is_to_run = ~pl.col("outcome").is_in(["skipped", "dummy"]).fill_null(value=False)
    is_ready = (queued_ns <= look.ts_ns) & (pl.col("shape") != "DUMMY") & is_to_run
    waits = told.filter(is_ready, pl.col("left") > 0).sort("queued_ns", "task")
    return waits.with_columns(place=pl.lit(None, pl.Int64)).select(columns).collect()


def _queues(look: Look) -> pl.DataFrame | None:
    """Each ready queue that has any tasks, with these in its order."""
    if look.state.ready is None:
        return None
    rows = [
        (queue, len(tasks), " ".join(map(str, tasks)))
        for queue, tasks in sorted(look.state.ready.items())
    ]
    schema = {"queue": pl.String, "num_tasks": pl.Int64, "tasks": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _places(ready: Mapping[str, tuple[int, ...]]) -> pl.DataFrame:
    rows = [
        (queue, place, task)
        for queue, tasks in sorted(ready.items())
        for place, task in enumerate(tasks)
    ]
    schema = {"queue": pl.String, "place": pl.Int64, "task": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _threads(look: Look) -> pl.DataFrame | None:
    """What each thread does, what it has taken cores for and not dispatched, and what it did last.

    `phase` and `since_ns`, which is since the trace began, are null where a trace does not tell of
    phases, and `num_preparing` where it does not tell when cores were taken.
    """
    told = _given(look).drop_nulls("thread")
    phases = _phases(look)
    if not len(told.head(1).collect()) and not len(phases):
        return None
    at_ns = pl.coalesce("dispatch_ns", "ts_ns")
    then = told.filter(at_ns <= look.ts_ns).sort(at_ns, maintain_order=True)
    columns = ("task", "block", "shape", "group", "core")
    last = then.group_by("thread").agg(pl.col(columns).last(), num_dispatched=pl.len())
    is_known = pl.col("claim_ns").is_not_null().all()
    prepares = (pl.col("claim_ns") <= look.ts_ns) & (at_ns > look.ts_ns)
    num_preparing = pl.when(is_known).then(prepares.sum())
    every = told.group_by("thread").agg(num_preparing=num_preparing)
    both = phases.lazy().join(every, on="thread", how="full", coalesce=True)
    return both.join(last, on="thread", how="left").sort("thread").collect()


def _phases(look: Look) -> pl.DataFrame:
    """By the number of a thread of the scheduler what it does, and since when in the trace."""
    rows = [
        (number, each.phase, each.since_ns - look.debugger.bounds_ns[0])
        for name, each in (look.state.threads or {}).items()
        if (number := thread_number(name)) is not None
    ]
    schema = {"thread": pl.Int32, "phase": pl.String, "since_ns": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _orchestrator(look: Look) -> pl.DataFrame | None:
    """What the orchestrator does, and since when in the trace."""
    if look.state.threads is None:
        return None
    each = look.state.threads.get(ORCHESTRATOR)
    rows = [] if each is None else [(each.phase, each.since_ns - look.debugger.bounds_ns[0])]
    return pl.DataFrame(rows, schema={"phase": pl.String, "since_ns": pl.Int64}, orient="row")


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
    Facet("queues", "who stands in each ready queue, the next to be looked at first",
          ("tasks",), "queue", _queues),
    Facet("ready", "tasks that could run, with blocks that no core has", ("tasks",), "task",
          _ready),
    Facet("threads", "what each thread of the scheduler does, prepares, and dispatched last",
          ("core_spans",), "thread", _threads),
    Facet("orchestrator", "whether tasks are submitted, wait for room in a ring, or all are there",
          ("thread_phases",), "phase", _orchestrator),
    Facet("rings", "what is held of each ring that bounds how far tasks are submitted", ("tasks",),
          "ring", _rings),
)  # fmt: skip
