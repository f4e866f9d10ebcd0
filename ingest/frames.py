"""The schema in Polars: types, empty tables, and making a frame conform to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache

import polars as pl

from stepscope.ingest.columns import Table, Type
from stepscope.ingest.errors import SchemaMismatch
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.storage.spool import Spooled

Frame = pl.DataFrame | pl.LazyFrame | Spooled

DTYPES: Mapping[Type, type[pl.DataType]] = {
    Type.I64: pl.Int64,
    Type.I32: pl.Int32,
    Type.F64: pl.Float64,
    Type.STR: pl.String,
    Type.BOOL: pl.Boolean,
}
_WIDENS = {
    Type.I64: pl.datatypes.group.INTEGER_DTYPES,
    Type.I32: pl.datatypes.group.INTEGER_DTYPES,
    Type.F64: pl.datatypes.group.NUMERIC_DTYPES,
    Type.STR: (pl.String, pl.Categorical, pl.Enum),  # of whatever values: equal, and of other hash
    Type.BOOL: frozenset({pl.Boolean}),
}
FEW = 16 << 10
"""Up to so many values, a dictionary of all of them may stand in each part of a file."""


def without_nulls(frame: pl.DataFrame, columns: Sequence[str]) -> pl.DataFrame:
    """Leave out the rows that lack one of some columns; a frame without such rows is not copied."""
    return frame.drop_nulls(columns) if any(frame[name].null_count() for name in columns) else frame


def only(frame: pl.DataFrame, is_wanted: pl.Series) -> pl.DataFrame:
    """Give the rows that are wanted; a frame of which all are is not copied."""
    return frame if is_wanted.all(ignore_nulls=False) else frame.filter(is_wanted)


@cache
def polars_schema(table: Table) -> pl.Schema:
    """Give the names and Polars types of a table's columns, in order."""
    return pl.Schema({column.name: DTYPES[column.type]() for column in table.columns})


@cache
def empty(table: Table) -> pl.LazyFrame:
    """Give the table without a row."""
    return pl.LazyFrame(schema=polars_schema(table))


def table_named(name: str) -> Table:
    """Look a table up by name; raises `SchemaMismatch` naming near matches."""
    try:
        return BY_NAME[name]
    except KeyError:
        near = get_close_matches(name, BY_NAME, n=3)
        todo = f"did you mean {' or '.join(near)}?" if near else f"tables: {', '.join(BY_NAME)}"
        raise SchemaMismatch(f"there is no table {name!r}", todo=todo) from None


def conformed(frames: Mapping[str, Frame], *, keep_enums: bool = False) -> dict[str, pl.LazyFrame]:
    """Give frames by the names of their tables, each as `conform` does."""
    return {
        name: conform(table_named(name), frame, keep_enums=keep_enums)
        for name, frame in frames.items()
    }


def conform(table: Table, frame: Frame, *, keep_enums: bool = False) -> pl.LazyFrame:
    """Give the frame exactly the table's columns, order and types.

    A missing column that may be null is filled with null, a missing `rank` with 0. Text that is an
    Enum of few values stays one with `keep_enums`. Raises `SchemaMismatch` for a column that is
    unknown, has a type that does not fit, or is required and missing.
    """
    lazy = frame.lazy()
    found = lazy.collect_schema()
    unknown = [name for name in found if name not in table.names]
    if unknown:
        raise SchemaMismatch(f"unknown columns {', '.join(map(repr, unknown))}", where=table.name)
    missing = [name for name in table.required if name not in found]
    if missing:
        raise SchemaMismatch(f"columns {', '.join(map(repr, missing))} missing", where=table.name)
    columns = {name: _column(table, name, found.get(name)) for name in table.names}
    kept = [name for name, kind in found.items() if keep_enums and _is_of_few(kind)]
    return lazy.select(**columns | {name: pl.col(name) for name in kept})


def _is_of_few(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.Enum) and len(kind.categories) <= FEW


def _column(table: Table, name: str, found: pl.DataType | None) -> pl.Expr:
    wanted = polars_schema(table)[name]
    if found is None:
        return pl.lit(0 if name == "rank" else None, dtype=wanted).alias(name)
    if found == wanted:
        return pl.col(name)
    kind = next(column.type for column in table.columns if column.name == name)
    if found == pl.Null or found in _WIDENS[kind]:
        return pl.col(name).cast(wanted)
    raise SchemaMismatch(f"column {name!r} is {found}, not {wanted}", where=table.name)
