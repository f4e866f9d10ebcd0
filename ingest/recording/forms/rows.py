"""One function per table that packs its arguments into the journal: the recorder's hot path.

The functions are in C (`_rows.c`); where that was not compiled, they are built from the schema, so
that recording a row costs one call and one `struct.pack_into`. For `task_edges` the source is:

    def task_edges(step=None, ts_ns=_missing, from_task=_missing, to_task=_missing, source=None):
        _segment, _at = _place
        _place[1], _seq = _at + 40, None
        try:
            _pack(_segment, _at, _null64 if step is None else step, ts_ns, from_task, to_task,
                  0 if source is None else _ids[source], _at)
        except Exception:
            _mend(_segment, _at, (step, ts_ns, from_task, to_task, source), _seq)

The last field is the row's own offset: it is stored last, so only a whole row has it, and garbage
does not. A row of a table that tells of the scheduler's state has its place among all of these
before it, `_seq`, as `_next()` counts them. What cannot be packed (in a full segment, or a bad
value) raises and is seen to by `mend`; a string not seen before is written as its id is looked up.

Threads: a CPython with a GIL switches threads at calls and backward jumps only. There is none
between reading the `_place` and having moved it on, so every row gets a place of its own, in a
segment where that place exists; what follows keeps both. Unmapping a segment releases the GIL, so
the last reference to one is dropped before both, not between them. Without a GIL the recorder puts
a lock around the functions.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import repeat
from types import ModuleType
from typing import Any, NamedTuple

from stepscope.ingest.columns import Column, Table, Type

try:
    from stepscope.ingest.recording.forms import _rows
except ImportError:  # no compiler was at hand
    _rows = None  # type: ignore[assignment]  # None where it was not compiled

compiled: ModuleType | None = _rows
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
Opened = tuple[Segment, int] | None
"""Where a row lies that is completed later; None where it was not recorded."""
Place = list[Any]
"""The segment that is written to, and where its next row will lie: [Segment, int]."""
Begin = Callable[..., Opened]
Mend = Callable[[Segment, int, tuple[Any, ...], int | None], Opened]
Amend = Callable[[Opened, tuple[Any, ...]], None]
Count = Callable[[], int]
"""Gives the next row of a rank its place among those that tell of the scheduler's state."""

# Names of our own begin with an underscore: no column does.
_SOURCE = """
def build(_place, _pack, _ids, _mend, _next, _meant, _missing, _null64, _null32, _null_float):
    def {name}({parameters}):
        _segment, _at = _place
        _place[1], _seq = _at + {size}, None
        try:
            _pack(_segment, _at, {values}, _at)
        except Exception:
            _mend(_segment, _at, ({names},), _seq)

    def record_all({same}_rows):
        try:
            {same_values}
        except Exception:
            {no_values}
        for {each}, in _rows:
            for {each}, in _meant({each},):
                _segment = None
                _segment, _at = _place
                _place[1], _seq = _at + {size}, None
                try:
                    _pack(_segment, _at, {more_values}, _at)
                except Exception:
                    _mend(_segment, _at, ({more_names},), _seq)

    return {name}, record_all
"""
# A row in two: its columns, those that are completed later, a marker of theirs and the row's own.
_SOURCE_IN_TWO = """
def build(
    _place, _pack, _pack_later, _ids, _mend, _amend, _next, _missing, _null64, _null32, _null_float
):
    def {name}({parameters}):
        _segment, _at = _opened = *_place,
        _place[1], _seq = _at + {size}, None
        try:
            _pack(_segment, _at, {values}, {later_nulls}, 0, _at)
        except Exception:
            return _mend(_segment, _at, ({names},), _seq)
        return _opened

    def complete(_opened, {later_parameters}):
        try:
            _segment, _at = _opened
            _pack_later(_segment, _at + {later_at}, {later_values}, _at if _place[0] else None)
        except Exception:
            _amend(_opened, ({later_names},))

    return {name}, complete
"""
_NULL_NAMES = {
    Type.I64: "_null64",
    Type.I32: "_null32",
    Type.F64: "_null_float",
    Type.STR: "0",
    Type.BOOL: "-1",
}


class RowFunctions(NamedTuple):
    """`record` packs a row; `more` one for each tuple of an iterable, behind what is the same in
    all of them; of rows in two, `more` adds to a row what was not known when that was recorded.
    """

    record: Callable[..., Any]
    more: Callable[..., None]


def row_struct(columns: Sequence[Column], later: Sequence[Column] = ()) -> struct.Struct:
    """Give the layout of a row: its columns and the marker, little-endian, without padding.

    Columns that are completed `later` lie behind the others, with a marker of their own.
    """
    return struct.Struct("<" + _formats(columns) + (_formats(later) + "I" if later else "") + "I")


def later_struct(later: Sequence[Column]) -> struct.Struct:
    """Give the layout of what completes a row: the later columns and their marker."""
    return struct.Struct("<" + _formats(later) + "I")


def later_offset(columns: Sequence[Column]) -> int:
    """Give where in a row its later columns begin."""
    return struct.calcsize("<" + _formats(columns))


def stored(table: Table, columns: Sequence[Column]) -> list[Column]:
    """Give the columns that lie in the journal where these are given: `seq` is counted."""
    return [*columns, *(each for each in table.columns if each.name == "seq")]


def build_row(
    place: Place,
    table: Table,
    columns: Sequence[Column],
    ids: Mapping[str, int],
    mend: Mend,
    count: Count,
    same: Sequence[str] = (),
    each: Sequence[str] = (),
) -> RowFunctions:
    """Build the functions that record rows of these columns of the table, as they are stored.

    `more` is given columns that are the `same` in all of its rows, and tuples of those that are
    not: `each`, all others where neither is named. What it is not given is null. A tuple with lists
    is a row for each of their items.
    """
    each = each or [column.name for column in given(columns)]
    if compiled is not None:
        packer = compiled.Packer(
            place, ids, mend, None, count, MISSING, _told(table, columns, same, each), (),
            len(same), len(each),
        )  # fmt: skip
        return RowFunctions(packer.record, packer.record_all)
    layout, spelt = row_struct(columns), _spelt(table, columns)
    known = {*same, *each, "seq"}
    more_names = (each.name if each.name in known else "None" for each in given(columns))
    source = _SOURCE.format(
        size=layout.size, same="".join(f"{name}, " for name in same), each=", ".join(each),
        more_names=", ".join(more_names), **_more_values(table, columns, same, known), **spelt,
    )  # fmt: skip
    return RowFunctions(*_built(source, place, layout.pack_into, ids, mend, count, _meant))


def _meant(*values: Any) -> Iterable[tuple[Any, ...]]:
    """The rows that are meant: one, or as many as the shortest list among the values has."""
    if list not in map(type, values):
        return (values,)
    return zip(*(each if type(each) is list else repeat(each) for each in values), strict=False)


def _more_values(
    table: Table, columns: Sequence[Column], same: Sequence[str], known: Collection[str]
) -> dict[str, str]:
    """Spell what is packed of many rows: values that are the same in all of them are made once.

    Where one of these is bad none is made, and each row fails by itself.
    """
    values = {each.name: _value(table, each) for each in columns if each.name in known}
    kept = {name: f"_{place}" for place, name in enumerate(same)}
    packed = (
        kept.get(column.name) or values.get(column.name) or _NULL_NAMES[column.type]
        for column in columns
    )
    return {
        "more_values": ", ".join(packed),
        "same_values": "; ".join(f"{kept[name]} = {values[name]}" for name in same) or "pass",
        "no_values": "".join(f"{name} = " for name in kept.values()) + "None" if same else "pass",
    }


def build_row_in_two(
    place: Place,
    table: Table,
    columns: Sequence[Column],
    later: Sequence[Column],
    ids: Mapping[str, int],
    mend: Mend,
    amend: Amend,
    count: Count,
) -> RowFunctions:
    """Build the functions that begin rows and complete them."""
    if compiled is not None:
        packer = compiled.Packer(
            place, ids, mend, amend, count, MISSING, _told(table, columns), _told(table, later),
            0, 0,
        )  # fmt: skip
        return RowFunctions(packer.record, packer.complete)
    layout, spelt_later = row_struct(columns, later), _spelt(table, later)
    source = _SOURCE_IN_TWO.format(
        size=layout.size,
        later_at=later_offset(columns),
        later_nulls=", ".join(_NULL_NAMES[column.type] for column in later),
        later_parameters=spelt_later["parameters"],
        later_values=spelt_later["values"],
        later_names=spelt_later["names"],
        **_spelt(table, columns),
    )
    pack_later = later_struct(later).pack_into
    return RowFunctions(
        *_built(source, place, layout.pack_into, pack_later, ids, mend, amend, count)
    )


def _told(
    table: Table, columns: Sequence[Column], same: Sequence[str] = (), each: Sequence[str] = ()
) -> tuple[tuple[str, str, bool, int, int], ...]:
    """Say of each column what `_rows.Packer` is to know of it."""

    def place(name: str, among: Sequence[str]) -> int:
        return [*among].index(name) if name in among else -1

    return tuple(
        (
            column.name, "s" if column.name == "seq" else FORMATS[column.type],
            column.name in table.required, place(column.name, same), place(column.name, each),
        )
        for column in columns
    )  # fmt: skip


def _built(source: str, *given: Any) -> tuple[Any, ...]:
    namespace: dict[str, Any] = {}
    exec(source, namespace)  # noqa: S102 - the text is made of our own schema alone
    nulls = (NULLS[kind] for kind in (Type.I64, Type.I32, Type.F64))
    built: tuple[Any, ...] = namespace["build"](*given, MISSING, *nulls)
    return built


def given(columns: Sequence[Column]) -> list[Column]:
    """Give those of the stored columns that whoever records a row gives."""
    return [column for column in columns if column.name != "seq"]


def _spelt(table: Table, columns: Sequence[Column]) -> dict[str, str]:
    return {
        "name": table.name,
        "parameters": ", ".join(_parameter(table, column) for column in given(columns)),
        "values": ", ".join(_value(table, column) for column in columns),
        "names": ", ".join(column.name for column in given(columns)),
    }


def _formats(columns: Sequence[Column]) -> str:
    return "".join(FORMATS[column.type] for column in columns)


def _parameter(table: Table, column: Column) -> str:
    return f"{column.name}={'_missing' if column.name in table.required else 'None'}"


def _value(table: Table, column: Column) -> str:
    if column.name == "seq":
        return "(_seq := _next())"
    value = f"_ids[{column.name}]" if column.type is Type.STR else column.name
    if column.name in table.required:
        return value
    return f"{_NULL_NAMES[column.type]} if {column.name} is None else {value}"
