"""Rows as flat arrays, in memory or mapped from files, of which few of millions are looked at.

Polars reads its own files whole, which takes longer than all else that a session does at its start.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.held.by_name import ByName
from stepscope.app.debug.held.narrow_numbers import Numbers, narrow, narrowest

ENDS = ("until", "last_until")
"""Columns of places in the order that may be NEVER."""
FEW_TEXTS, SAMPLE = 4096, 10_000
MANY = 64
"""Of so many, what can be asked of all rows at once is asked so."""
MOST_INT16 = (1 << 15) - 1
POLARS = {np.int8: pl.Int8, np.int16: pl.Int16, np.int32: pl.Int32, np.int64: pl.Int64}
Arrays = Mapping[str, npt.NDArray[Any]]


class Texts(NamedTuple):
    """Texts of rows: `ends` of each in `utf8`, and by row which of them; -1 is null.

    Where each row has a text of its own, they lie in the order of the rows, and `codes` is empty.
    """

    codes: Numbers
    ends: Numbers
    utf8: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, texts: pl.Series) -> Texts:
        """Lay texts out; where they are few, or some are null, each only once."""
        codes = np.empty(0, np.int8)
        if (few := _few(texts)) is not None:
            codes, texts = few
        elif texts.null_count():
            known = texts.drop_nulls().unique().sort()
            coded = texts.cast(pl.Enum(known)).to_physical().cast(pl.Int32).fill_null(-1)
            codes, texts = narrow(coded.to_numpy()), known
        joined: bytes = texts.str.join("").cast(pl.Binary).item() or b""
        held = POLARS[narrowest(0, max(len(joined), MOST_INT16))] if len(texts) else pl.Int64
        ends = narrow(texts.str.len_bytes().cast(held).cum_sum().to_numpy())
        return cls(codes, ends, np.frombuffer(joined, np.uint8))

    def take(self, places: Iterable[int]) -> list[str | None]:
        """The texts of some rows; of many that have few texts, each text is made once."""
        if not len(self.codes):
            return self._own(np.asarray([*places], np.int64))
        numbers = self.codes[np.asarray([*places], np.int64)]
        if len(numbers) < MANY:
            return [self._text(number) for number in numbers.tolist()]
        known, which = np.unique(numbers, return_inverse=True)
        texts = [self._text(number) for number in known.tolist()]
        return [texts[at] for at in which.tolist()]

    def are_among(self, wanted: Collection[str], places: Numbers) -> npt.NDArray[np.bool_]:
        """Whether the texts of some rows are among others."""
        if not len(self.codes):
            return np.array([text in wanted for text in self._own(places)], bool)
        each = np.array([self._text(number) in wanted for number in range(len(self.ends))], bool)
        return np.append(each, False)[self.codes[places]]

    def _own(self, places: Numbers) -> list[str | None]:
        """The texts of rows that each have one of their own."""
        ends = self.ends[places].tolist()
        begins = np.where(places > 0, self.ends[np.maximum(places - 1, 0)], 0).tolist()
        utf8 = self.utf8.data
        return [str(utf8[begin:end], "utf-8") for begin, end in zip(begins, ends, strict=True)]

    def _text(self, number: int) -> str | None:
        if number < 0:
            return None
        begin = int(self.ends[number - 1]) if number else 0
        return self.utf8[begin : int(self.ends[number])].tobytes().decode()


class Nullable(NamedTuple):
    """Numbers of rows, and which of them are known."""

    values: Numbers
    is_known: npt.NDArray[np.bool_]

    def take(self, places: Iterable[int]) -> list[int | None]:
        """The numbers of a few rows."""
        return [int(self.values[at]) if self.is_known[at] else None for at in places]


Column = Numbers | Nullable | Texts | ByName
Marks = Callable[[Numbers], npt.NDArray[np.bool_]]
"""Says of some rows which of them are meant."""
LAID_OUT: tuple[type[Nullable | Texts | ByName], ...] = (Texts, Nullable, ByName)
ROWS_OF = "rows_of_"
"""In front of a column's name: which of its rows have a text."""


class FlatRows:
    """Rows of columns of numbers and of texts."""

    def __init__(self, columns: Mapping[str, Column], num_rows: int) -> None:
        self._columns, self._num_rows = columns, num_rows

    @classmethod
    def of(
        cls, rows: pl.DataFrame, sought: str | None = None, by_name: ByName | None = None
    ) -> FlatRows:
        """Lay out a frame of integers, booleans and texts, of which those of one are sought.

        `by_name` says where those are, if that was found before.
        """
        columns = {column.name: _laid_out(column) for column in rows}
        if sought is not None:
            columns[ROWS_OF + sought] = by_name or ByName.of(rows[sought].cast(pl.String))
        return cls(columns, len(rows))

    @classmethod
    def from_arrays(cls, arrays: Arrays, num_rows: int) -> FlatRows:
        """The rows of which `arrays` gives the arrays."""
        columns: dict[str, Column] = {}
        for name in {name.partition("/")[0] for name in arrays}:
            if name in arrays:
                columns[name] = arrays[name]
            else:
                [made] = [each for each in LAID_OUT if f"{name}/{each._fields[0]}" in arrays]
                columns[name] = made(*(arrays[f"{name}/{part}"] for part in made._fields))
        return cls(columns, num_rows)

    def __len__(self) -> int:
        return self._num_rows

    def arrays(self) -> Arrays:
        """All that the rows are made of, by name."""
        found: dict[str, npt.NDArray[Any]] = {}
        for name, column in self._columns.items():
            if isinstance(column, np.ndarray):
                found[name] = column
            else:
                found |= {f"{name}/{part}": array for part, array in column._asdict().items()}
        return found

    def numbers(self, name: str) -> Numbers:
        """A column of numbers that are all known, in as few bytes as these need."""
        column = self._columns[name]
        assert isinstance(column, np.ndarray), name
        return column

    def texts(self, name: str) -> Texts:
        """A column of texts."""
        column = self._columns[name]
        assert isinstance(column, Texts), name
        return column

    def places_of(self, name: str, text: str) -> Numbers:
        """Which rows have a text in a column that was laid out to be sought in."""
        return self._places_of(name, (text,))[0]

    def _places_of(self, name: str, texts: Sequence[str]) -> list[Numbers]:
        by_name = self._columns[ROWS_OF + name]
        assert isinstance(by_name, ByName), name
        every = by_name.places_of(texts)
        asked = [own[:1] if by_name.is_exact else own for own in every]
        said = iter(self.texts(name).take(at for own in asked for at in own.tolist()))
        return [
            own if all(is_it) else own[np.flatnonzero(is_it)]
            for own, some, text in zip(every, asked, texts, strict=True)
            for is_it in ([next(said) == text for _ in range(len(some))],)
        ]

    def last_of(self, name: str, texts: Sequence[str], is_it: Marks) -> list[int]:
        """Of each text the last row that has it of those that `is_it` marks; -1 where none does.

        Of many texts all rows are asked for, of a few those that have them.
        """
        by_name = self._columns[ROWS_OF + name]
        assert isinstance(by_name, ByName), name
        if len(texts) < MANY or not by_name.is_exact:
            every = self._places_of(name, texts)
            return [int(max(own[is_it(own)], default=-1)) for own in every]
        marked = is_it(np.arange(self._num_rows))
        last = by_name.last_of(pl.Series(texts, dtype=pl.String), marked).tolist()
        found = iter(self.texts(name).take(place for place in last if place >= 0))
        return [
            place if place >= 0 and next(found) == text else -1
            for place, text in zip(last, texts, strict=True)
        ]

    def rows(self, places: Iterable[int], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Some columns of a few rows, as Python values."""
        wanted = np.asarray([*places], np.int64)
        return [*zip(*(self._taken(name, wanted) for name in names), strict=True)]

    def _taken(self, name: str, places: Numbers) -> list[Any]:
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return list(column[places].tolist())
        assert not isinstance(column, ByName), name
        return list(column.take(places.tolist()))


def _laid_out(column: pl.Series) -> Column:
    if column.dtype in {pl.String, pl.Null}:
        return Texts.of(column.cast(pl.String))
    numbers = column.cast(pl.Int64).fill_null(0)
    if column.name in ENDS or not len(numbers):
        narrowed = narrow(numbers.to_numpy(), is_end=column.name in ENDS)
    else:
        low, high = numbers.to_frame().select(low=pl.first().min(), high=pl.first().max()).row(0)
        narrowed = numbers.cast(POLARS[narrowest(low, high)]).to_numpy()
    return Nullable(narrowed, column.is_not_null().to_numpy()) if column.null_count() else narrowed


def _few(texts: pl.Series) -> tuple[Numbers, pl.Series] | None:
    """By row which of few texts it is, and these; None where they are many.

    Those of a sample are mostly all: to number them so takes a tenth of what an Enum does.
    """
    if texts.null_count() == len(texts) > 0:
        return np.full(len(texts), -1, np.int8), texts.clear()
    sample = texts.gather_every(len(texts) // SAMPLE + 1)
    if sample.n_unique() * 2 >= len(sample):
        return None
    for among in (sample, texts):
        known = among.drop_nulls().unique().sort()
        if len(known) > FEW_TEXTS:
            return None
        numbers = pl.Series(range(len(known)), dtype=pl.Int16)
        coded = texts.replace_strict(known, numbers, default=None)
        if coded.null_count() == texts.null_count():
            break
    return narrow(coded.fill_null(-1).to_numpy()), known
