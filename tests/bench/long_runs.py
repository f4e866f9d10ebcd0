"""Long runs made of short ones: a recorded trace laid end to end, each copy with its own names."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import polars as pl

from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace

# What says which step, and which request; and numbers that only go up.
STEPS = ("step", "source_step")
REQUESTS = ("request", "subject", "holder", "by_request", "instead", "owner")
NUMBERS = ("task", "from_task", "to_task", "ordinal", "epoch")


def recorded(name: str, variant: str) -> Trace:
    """What the reference engine records of a scenario, held in memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.trace"
        scenario(name).record(variant, path, Options())
        trace = Trace.open(path)
        return Trace.from_tables(_tables(trace), trace.manifest)


def num_rows(trace: Trace, table: str = "") -> int:
    """Count the rows of a table, or of all."""
    return sum(trace.num_rows(each.name) for each in TABLES if table in ("", each.name))


def of_rows(trace: Trace, rows: int, table: str = "") -> Trace:
    """Lay a trace end to end until that table, or all of them together, has that many rows."""
    return laid_end_to_end(trace, math.ceil(rows / num_rows(trace, table)))


def laid_end_to_end(trace: Trace, copies: int) -> Trace:
    """Let a run happen `copies` times, one after the other, with steps, requests and tasks anew."""
    tables = _tables(trace)
    length_ns = 1 + max(_ends_ns(rows) for rows in tables.values())
    num_steps = 1 + int(trace.steps.select(pl.col("step").max()).collect().item())
    requests = trace.lifecycle.select("request").unique().collect()["request"]
    last = {name: max(_most(name, rows) for rows in tables.values()) for name in NUMBERS}
    # A task is the same one in every table that names it.
    last |= dict.fromkeys(("from_task", "to_task"), last["task"])
    copy = pl.LazyFrame({"copy": range(copies)}, schema={"copy": pl.Int64})

    def copied(rows: pl.DataFrame) -> pl.DataFrame:
        times = [name for name in rows.columns if name.endswith("_ns") and name != "dur_ns"]
        further = dict.fromkeys(times, length_ns) | dict.fromkeys(STEPS, num_steps)
        further |= {name: 1 + number for name, number in last.items()}
        moved = [
            (pl.col(name) + pl.col("copy") * by).cast(rows.schema[name])
            for name, by in further.items()
            if name in rows.columns
        ]
        named = [_own(name, requests) for name in REQUESTS if name in rows.columns]
        return (
            copy.join(rows.lazy(), how="cross").with_columns(*moved, *named).drop("copy").collect()
        )

    return Trace.from_tables(
        {name: copied(rows) for name, rows in tables.items()}, trace.manifest, name=trace.name
    )


def _tables(trace: Trace) -> dict[str, pl.DataFrame]:
    names = [table.name for table in TABLES if trace.has(table.name)]
    return {name: trace.table(name).collect() for name in names}


def _most(number: str, rows: pl.DataFrame) -> int:
    return int(rows[number].max() or 0) if number in rows.columns else 0  # type: ignore[arg-type]  # a number, or None


def _ends_ns(rows: pl.DataFrame) -> int:
    """When the last of the rows ended."""
    lasts = pl.col("dur_ns").fill_null(0) if "dur_ns" in rows.columns else 0
    times = ["ts_ns", *({"end_ns", "retired_ns"} & {*rows.columns})]
    ends = rows.select(pl.max_horizontal(pl.col("ts_ns") + lasts, *times).max())
    return int(ends.item() or 0)


def _own(name: str, requests: pl.Series) -> pl.Expr:
    """A request's name, with the copy behind it; what is not a request keeps its name."""
    own = pl.format("{}/{}", name, "copy")
    return pl.when(pl.col(name).is_in(requests.implode())).then(own).otherwise(name).alias(name)
