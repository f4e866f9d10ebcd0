"""The steps of a rank as a source: a line for each, to stop at, to go to, to read."""

from __future__ import annotations

import polars as pl

from stepscope.app.dap.arguments import Source
from stepscope.app.debug.debugger import Debugger
from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError

MOST_LINES = 100_000
COLUMNS = ("kind", "num_waiting", "num_running", "kv_blocks_free")


def source_of(rank: int) -> dict[str, object]:
    """The source of a rank; its number is one more than the rank."""
    return {"name": f"steps of rank {rank}", "sourceReference": rank + 1}


def rank_of(debugger: Debugger, source: Source) -> int:
    """Whose steps a source lists; raises ConfigError for a file, which lists none."""
    rank = source.source_reference - 1
    if rank in debugger.ranks:
        return rank
    what = source.path or source.name or f"source {source.source_reference}"
    raise ConfigError(f"{plain(what)} is no list of steps", todo="loadedSources names them")


def step_at(debugger: Debugger, rank: int, line: int) -> int:
    """The step of a line; raises ConfigError where there is none."""
    steps = debugger.tables.moments(rank).steps
    if not 1 <= line <= len(steps):
        raise ConfigError(f"no step is at line {line}", todo=f"there are {len(steps):,} lines")
    return int(steps[line - 1])


def line_of(debugger: Debugger, rank: int, step: int | None) -> int:
    """The line of a step; 0 where there is none."""
    place = None if step is None else debugger.tables.moments(rank).place_of(step)
    return 0 if place is None else place + 1


def text_of(debugger: Debugger, rank: int) -> str:
    """A line for each step, up to MOST_LINES."""
    rows = debugger.tables.table("steps").filter(pl.col("rank") == rank)
    told = {row["step"]: row for row in rows.select("step", *COLUMNS).collect().to_dicts()}
    steps = [int(step) for step in debugger.tables.moments(rank).steps[:MOST_LINES]]
    return "".join(f"{_line(step, told.get(step, {}))}\n" for step in steps)


def _line(step: int, row: dict[str, object]) -> str:
    known = [f"{name}={row[name]}" for name in COLUMNS if row.get(name) is not None]
    return plain(" ".join([f"step {step}", *known]))
