"""Small traces for tests, written out row by row.

trace_of(steps=[{"step": 0, "kind": "decode"}], lifecycle=[...], closed=False)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from stepscope.ingest.frames import polars_schema
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace

Rows = Iterable[Mapping[str, Any]]


def trace_of(*, name: str = "trace", **given: Any) -> Trace:
    """Make a trace of rows per table; every other keyword is a field of its manifest.

    `rank` is 0 and `ts_ns` the row's position where they are not given.
    """
    frames = {table: frame_of(table, rows) for table, rows in given.items() if table in BY_NAME}
    stated = {field: value for field, value in given.items() if field not in BY_NAME}
    stated.setdefault("tables", dict.fromkeys(frames, "complete"))
    manifest = Manifest(**{"producer": "test", **stated})
    return Trace.from_tables(frames, manifest, name=name)


def frame_of(table: str, rows: Rows) -> pl.DataFrame:
    """Make a frame of a table's columns; raises `ValueError` for a column that it lacks."""
    schema = polars_schema(BY_NAME[table])
    filled = [{"rank": 0, "ts_ns": position, **row} for position, row in enumerate(rows)]
    for row in filled:
        if unknown := row.keys() - schema.keys():
            raise ValueError(f"{table} has no column {', '.join(sorted(unknown))}")
        if missing := set(BY_NAME[table].required) - row.keys():
            raise ValueError(f"{table} needs {', '.join(sorted(missing))}")
    return pl.DataFrame(filled, schema=schema)


def by_track(spans: pl.DataFrame) -> pl.DataFrame:
    """Sort spans by track and time, outer before inner, and number them anew in that order."""
    sooner = pl.col("dur_ns").fill_null(1 << 62)
    ordered = spans.sort("rank", "track", "ts_ns", -sooner, "span")
    number = pl.int_range(pl.len(), dtype=pl.Int64).over("rank")
    numbered = ordered.with_columns(number.alias("span"))
    parents = numbered.select("rank", "span", parent=ordered["span"])
    return numbered.drop("parent").with_columns(
        ordered.select("rank", "parent")
        .join(parents, on=["rank", "parent"], how="left", maintain_order="left")["span"]
        .alias("parent")
    )
