"""Traces that no engine would write, for hypothesis: any table, any column null, any number."""

from __future__ import annotations

from typing import Any

import polars as pl
from hypothesis import strategies as st

from stepscope.ingest.frames import polars_schema
from stepscope.ingest.manifest import Manifest
from stepscope.ingest.schema import BY_NAME, Column, Type
from stepscope.ingest.trace import Trace

TABLES = ("steps", "batch_rows", "lifecycle", "decisions", "tasks", "core_spans")
Rows = dict[str, list[dict[str, Any]]]

_small = st.integers(-3, 40)
_times = _small | st.sampled_from([-(2**63), 2**63 - 1, 2**62, 1_763_000_000_000_000_000])
_names = st.sampled_from(["r1", "r2", "r10", "", "\x1b[31m", "len=7 text", "9" * 30])


def _values(column: Column) -> st.SearchStrategy[Any]:
    match column.type:
        case Type.I64:
            return _times
        case Type.I32:
            return st.integers(0, 3) | st.sampled_from([-(2**31), 2**31 - 1])
        case Type.BOOL:
            return st.booleans()
        case Type.F64:
            return st.floats()
        case Type.STR:
            return st.sampled_from(column.values) if column.values else _names


def _rows(table: str, kept: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of which every column outside `kept` may be null."""
    columns = {
        column.name: _values(column) if column.name in kept else st.none() | _values(column)
        for column in BY_NAME[table].columns
    }
    columns["rank"] = st.integers(0, 1)
    return st.lists(st.fixed_dictionaries(columns), max_size=12)


absurd_rows: st.SearchStrategy[Rows] = st.fixed_dictionaries(
    {table: _rows(table, ()) | _rows(table, BY_NAME[table].required) for table in TABLES}
)


def trace_from(rows: Rows) -> Trace:
    """A trace of those rows; with nulls even where the schema wants a value."""
    frames = {
        table: pl.DataFrame(listed, schema=polars_schema(BY_NAME[table]))
        for table, listed in rows.items()
    }
    return Trace.from_tables(frames, Manifest("absurd", tables=dict.fromkeys(rows, "partial")))
