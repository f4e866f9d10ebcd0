"""One function per table that packs its arguments into the journal: the recorder's hot path.

The functions are built from the schema, so that recording a row costs one call and one
`struct.pack_into`. For `task_edges` the source is:

    def task_edges(step=None, ts_ns=_missing, from_task=_missing, to_task=_missing, source=None):
        nonlocal _offset
        _at = _offset
        _offset = _at + 40
        try:
            _pack(_segment, _at, _null64 if step is None else step, ts_ns, from_task, to_task,
                  0 if source is None else _ids[source], _at)
        except Exception:
            _mend(_segment, _at, (step, ts_ns, from_task, to_task, source))

The last field is the row's own offset: it is stored last, so only a whole row has it, and garbage
does not. What cannot be packed at once (a string not seen before, a full segment, a bad value)
raises and is seen to by `mend`.

Threads: a CPython with a GIL switches threads at calls and backward jumps only. There is none
between reading `_offset` and having read `_segment`, so every row gets a place of its own, in a
segment where that place exists. Without a GIL the recorder puts a lock around the functions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from stepscope.ingest.columns import Column, Table, Type

FORMATS: Mapping[Type, str] = {
    Type.I64: "q",
    Type.I32: "i",
    Type.F64: "d",
    Type.STR: "I",
    Type.BOOL: "b",
}
NULLS: Mapping[Type, int | float] = {
    Type.I64: -(1 << 63),
    Type.I32: -(1 << 31),
    Type.F64: math.nan,
    Type.STR: 0,
    Type.BOOL: -1,
}
MISSING: Any = type("missing", (), {"__repr__": lambda _: "missing"})()
VOID = 0xFFFFFFFF
"""A place that holds no row and never will has its offset XOR this in the marker's field."""

Row = Callable[..., None]
Segment = Any  # mmap.mmap | bytearray, which have no common name in typing
Mend = Callable[[Segment, int, tuple[Any, ...]], None]

# Names of our own begin with an underscore: no column does.
_SOURCE = """
def build(_pack, _ids, _mend, _missing, _null64, _null32, _null_float):
    _segment, _offset = bytearray(), 0

    def {name}({parameters}):
        nonlocal _offset
        _at = _offset
        _offset = _at + {size}
        try:
            _pack(_segment, _at, {values}, _at)
        except Exception:
            _mend(_segment, _at, ({names},))

    def claim():
        nonlocal _offset
        _at = _offset
        _offset = _at + {size}
        return _segment, _at

    def turn_to(fresh, start):
        nonlocal _segment, _offset
        _segment, _offset = fresh, start

    return {name}, claim, turn_to
"""
_NULL_NAMES = {
    Type.I64: "_null64",
    Type.I32: "_null32",
    Type.F64: "_null_float",
    Type.STR: "0",
    Type.BOOL: "-1",
}


class RowFunctions(NamedTuple):
    """`record` packs a row, `claim` takes the next place, `turn_to` goes on in another segment."""

    record: Row
    claim: Callable[[], tuple[Segment, int]]
    turn_to: Callable[[Segment, int], None]


def row_struct(columns: Sequence[Column]) -> struct.Struct:
    """Give the layout of a row: its columns and the marker, little-endian, without padding."""
    return struct.Struct("<" + "".join(FORMATS[column.type] for column in columns) + "I")


def build_row(
    table: Table, columns: Sequence[Column], ids: Mapping[str, int], mend: Mend
) -> RowFunctions:
    """Build the functions that record rows of these columns of the table."""
    layout = row_struct(columns)
    source = _SOURCE.format(
        name=table.name,
        size=layout.size,
        parameters=", ".join(_parameter(table, column) for column in columns),
        values=", ".join(_value(table, column) for column in columns),
        names=", ".join(column.name for column in columns),
    )
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - the text is made of our own schema alone
    null64, null32, null_float = (NULLS[t] for t in (Type.I64, Type.I32, Type.F64))
    functions = namespace["build"](layout.pack_into, ids, mend, MISSING, null64, null32, null_float)
    return RowFunctions(*functions)


def _parameter(table: Table, column: Column) -> str:
    return f"{column.name}={'_missing' if column.name in table.required else 'None'}"


def _value(table: Table, column: Column) -> str:
    value = f"_ids[{column.name}]" if column.type is Type.STR else column.name
    if column.name in table.required:
        return value
    return f"{_NULL_NAMES[column.type]} if {column.name} is None else {value}"
