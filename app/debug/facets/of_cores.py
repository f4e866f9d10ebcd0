"""Core groups at a position: cores, the tasks that are ready, and threads of the scheduler."""

from __future__ import annotations

import polars as pl

from stepscope.app.debug.facets.look import Facet, Look
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
    given = pl.coalesce("dispatch_ns", "ts_ns") <= look.ts_ns
    blocks = (
        look.rows("core_spans")
        .filter(given)
        .group_by("task")
        .agg(given=pl.col("block").n_unique().cast(pl.Int64))
    )
    is_to_run = ~pl.col("outcome").is_in(["skipped", "dummy"]).fill_null(value=False)
    is_ready = (pl.col("ready_ns") <= look.ts_ns) & (pl.col("shape") != "DUMMY") & is_to_run
    joined = look.then("tasks").filter(is_ready).join(blocks, on="task", how="left")
    left = pl.col("num_blocks").cast(pl.Int64) - pl.col("given").fill_null(0)
    waits = joined.with_columns(left=left, waits_ns=look.ts_ns - pl.col("ready_ns"))
    columns = ("task", "name", "shape", "num_blocks", "left", "waits_ns")
    return waits.filter(pl.col("left") > 0).sort("ready_ns", "task").select(columns).collect()


def _threads(look: Look) -> pl.DataFrame | None:
    """The last that each thread dispatched, which is all that is recorded of one."""
    told = look.rows("core_spans").drop_nulls("thread")
    if not len(told.head(1).collect()):
        return None
    at_ns = pl.coalesce("dispatch_ns", "ts_ns")
    then = told.filter(at_ns <= look.ts_ns).sort(at_ns, maintain_order=True)
    columns = ("task", "block", "shape", "group", "core")
    last = then.group_by("thread").agg(pl.col(columns).last(), num_dispatched=pl.len())
    return last.sort("thread").collect()


def _rings(_look: Look) -> pl.DataFrame | None:
    """No table tells of rings."""
    return None


OF_CORES: tuple[Facet, ...] = (
    Facet("cores", "what each core executes, and what is behind that", ("core_spans",), "core",
          _cores),
    Facet("ready", "tasks that could run, with blocks that no core has", ("tasks", "core_spans"),
          "task", _ready),
    Facet("threads", "what each thread of the scheduler dispatched last", ("core_spans",), "thread",
          _threads),
    Facet("rings", "the rings between the scheduler's threads", (), "ring", _rings),
)  # fmt: skip
