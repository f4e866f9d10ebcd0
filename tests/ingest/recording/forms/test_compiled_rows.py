"""Rows packed in C are those that Python packs: the same bytes, the same left to be mended."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.ingest.columns import Column, Table, Type
from stepscope.ingest.recording.forms import rows
from stepscope.ingest.recording.forms.rows import build_row, build_row_in_two, row_struct, stored
from stepscope.ingest.recording.lasting import LASTING_TABLES
from stepscope.ingest.schema import TABLES
from tests.tiers import slow

pytestmark = pytest.mark.skipif(rows.compiled is None, reason="the rows are not compiled")
KINDS = (*TABLES, *LASTING_TABLES.values())
NUM_ROWS = 6
numbers = st.integers(-3, 300) | st.sampled_from(
    [1 << 31, (1 << 31) - 1, -(1 << 31), 1 << 63, (1 << 63) - 1, -(1 << 63), 127, 128, -129]
)
values = st.one_of(
    numbers, st.none(), st.text(max_size=3), st.floats(), st.booleans(),
    st.lists(numbers, max_size=3), st.lists(st.text(max_size=2), max_size=2),
    st.sampled_from([b"x", np.int64(7), np.float32(2.5), np.bool_(True), [], object, 1j]),
)  # fmt: skip
RIGHT: Mapping[Type, st.SearchStrategy[Any]] = {
    Type.I64: st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(0, 9),
    Type.I32: st.integers(-(1 << 31), (1 << 31) - 1) | st.integers(0, 9),
    Type.F64: st.floats() | st.integers(0, 9),
    Type.STR: st.text(max_size=3),
    Type.BOOL: st.booleans(),
}
Call = tuple[Any, ...]


def value_of(column: Column) -> st.SearchStrategy[Any]:
    """Mostly what a column takes."""
    right = RIGHT[column.type]
    return st.integers(0, 9).flatmap(lambda draw: values if draw == 0 else right)


def row_of(columns: Sequence[Column]) -> st.SearchStrategy[list[Any]]:
    return st.tuples(*map(value_of, columns)).map(list)


class Texts(dict[Any, int]):
    """Ids of texts as the journal gives them: of what is no text none, and one is too large."""

    def __missing__(self, text: Any) -> int:
        if type(text) is not str:
            raise KeyError(text)
        self[text] = 1 << 32 if text == "0" else len(self) + 1
        return self[text]


class Side:
    """One of the two ways: the segment that it writes, and what it gave to be mended."""

    def __init__(self, size: int, *, num_rows: int = NUM_ROWS) -> None:
        self.size = size
        self.segment = bytearray(size * num_rows + 3)
        self.place: list[Any] = [self.segment, 0]
        self.ids, self.count = Texts(), count(1)
        self.told: list[Any] = []

    def mend(self, segment: Any, at: int, row: Call, seq: int | None) -> Any:
        assert segment is self.place[0]
        self.told.append((at, repr(row), seq))
        if at + self.size <= len(segment):
            segment[at : at + self.size] = b"\xee" * self.size
        return None if seq is None or seq % 2 else (segment, at)

    def amend(self, opened: Any, row: Call) -> None:
        self.told.append((None if opened is None else opened[1], repr(row)))
        if opened is not None:
            at = opened[1]
            self.segment[at : at + self.size] = b"\xdd" * min(self.size, len(self.segment) - at)

    def called(self, function: Callable[..., Any], args: Sequence[Any], named: Any = ()) -> Any:
        try:
            found = function(*args, **dict(named))
        except Exception as error:
            self.told.append(type(error))
            return None
        self.told.append(found[1] if isinstance(found, tuple) else found)
        return found

    def left(self) -> Any:
        return bytes(self.segment), self.place[1], self.ids, next(self.count), self.told


@st.composite
def tables(draw: st.DrawFn) -> tuple[Table, list[Column]]:
    """A table, and those of its columns that are recorded, in any order."""
    table = draw(st.sampled_from(KINDS))
    given_ones = [column for column in table.given if column.name not in ("rank", "seq")]
    columns = draw(st.permutations(given_ones))
    kept = draw(st.sets(st.sampled_from([column.name for column in columns])))
    return table, [c for c in columns if c.name in kept or c.name in table.required]


def both(build: Callable[[Side], Sequence[Callable[..., Any]]], size: int) -> Any:
    """The two ways, each with its functions."""
    sides = []
    for compiled in (rows.compiled, None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rows, "compiled", compiled)
            side = Side(size)
            sides.append((side, build(side)))
    return sides


@slow
@given(tables(), st.data())
def test_a_row_is_packed_alike(kind: tuple[Table, list[Column]], data: st.DataObject) -> None:
    table, given_ones = kind
    columns = stored(table, given_ones)
    names = [column.name for column in rows.given(columns)]
    args = row_of(rows.given(columns)) | st.lists(values, max_size=len(names) + 1)
    named = st.dictionaries(st.sampled_from([*names, "nothing"]), values, max_size=2)
    calls = data.draw(st.lists(st.tuples(args, named), max_size=NUM_ROWS + 2))
    sides = both(
        lambda side: build_row(
            side.place, table, columns, side.ids, side.mend, side.count.__next__
        ),
        row_struct(columns).size,
    )

    for side, (record, _) in sides:
        for some, more in calls:
            side.called(record, some, more)

    assert sides[0][0].left() == sides[1][0].left()


@slow
@given(tables(), st.data())
def test_several_rows_are_packed_alike(
    kind: tuple[Table, list[Column]], data: st.DataObject
) -> None:
    table, given_ones = kind
    columns = stored(table, given_ones)
    names = [column.name for column in rows.given(columns)]
    where = data.draw(st.lists(st.sampled_from("sen"), min_size=len(names), max_size=len(names)))
    same = [name for name, place in zip(names, where, strict=True) if place == "s"]
    each = [name for name, place in zip(names, where, strict=True) if place == "e"] or names[:1]
    same = [name for name in same if name not in each]
    by_name = {column.name: column for column in columns}
    row = row_of([by_name[name] for name in each]).map(tuple)
    calls = st.tuples(
        row_of([by_name[name] for name in same]),
        st.lists(row | row | st.lists(values, max_size=len(each) + 1), max_size=NUM_ROWS + 1),
    )
    told = data.draw(st.lists(calls, max_size=3))
    sides = both(
        lambda side: build_row(
            side.place, table, columns, side.ids, side.mend, side.count.__next__, same, each
        ),
        row_struct(columns).size,
    )

    for side, (_, record_all) in sides:
        for some, own in told:
            side.called(record_all, [*some, iter(own)])

    assert sides[0][0].left() == sides[1][0].left()


@slow
@given(tables(), st.data())
def test_a_row_in_two_is_packed_and_completed_alike(
    kind: tuple[Table, list[Column]], data: st.DataObject
) -> None:
    table, given_ones = kind
    optional = [column for column in given_ones if column.name not in table.required]
    later = optional[: data.draw(st.integers(1, len(optional)))] if optional else []
    if not later:
        return
    columns = stored(table, [column for column in given_ones if column not in later])
    first, last = row_of(rows.given(columns)), row_of(later) | st.lists(values, max_size=1)
    calls = data.draw(st.lists(st.tuples(first, last, st.booleans()), max_size=NUM_ROWS + 1))
    is_stopped = data.draw(st.booleans())
    sides = both(
        lambda side: build_row_in_two(
            side.place, table, columns, later, side.ids, side.mend, side.amend,
            side.count.__next__,
        ),
        row_struct(columns, later).size,
    )  # fmt: skip

    for side, (record, complete) in sides:
        opened = [side.called(record, some) for some, _, _ in calls]
        if is_stopped:
            side.place[:] = bytearray(), 0
        for row, (_, more, is_completed) in zip(opened, calls, strict=True):
            if is_completed:
                side.called(complete, [row, *more])

    assert sides[0][0].left() == sides[1][0].left()


@pytest.mark.parametrize("way", ["compiled", "python"])
def test_what_must_not_be_caught_is_not(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if way == "python":
        monkeypatch.setattr(rows, "compiled", None)
    table = next(table for table in TABLES if table.name == "lifecycle")
    columns = stored(table, [c for c in table.given if c.name in table.required])
    side = Side(row_struct(columns).size)

    def interrupted(*_: Any) -> int:
        raise KeyboardInterrupt

    record, record_all = build_row(
        side.place, table, columns, side.ids, side.mend, interrupted, (), ()
    )

    row = [1 if column.name in ("step", "ts_ns") else "x" for column in rows.given(columns)]
    for function, args in ((record, row), (record_all, [[row]])):
        with pytest.raises(KeyboardInterrupt):
            function(*args)
    assert side.told == []


@slow
def test_what_records_rows_goes_with_its_recorder() -> None:
    table = TABLES[0]
    columns = stored(table, list(table.given))
    side = Side(row_struct(columns).size)
    side.ids["itself"] = 1
    functions = build_row(side.place, table, columns, side.ids, side.mend, side.count.__next__)
    side.told.append(functions)  # a ring: the side holds what holds the side
    gone = weakref.ref(side)
    del functions, side
    gc.collect()

    assert gone() is None
