"""Rows as flat arrays, in memory or mapped from files, of which few of millions are looked at.

Polars reads its own files whole, which takes longer than all else that a session does at its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.held.following import NEVER

ENDS = ("until", "last_until")
"""Columns of places in the order that may be NEVER."""
FEW_TEXTS, SAMPLE = 4096, 10_000
Numbers = npt.NDArray[np.signedinteger[Any]]
Arrays = Mapping[str, npt.NDArray[Any]]


def narrow(values: Numbers, *, is_end: bool = False) -> Numbers:
    """The same numbers in the fewest bytes; of ends, NEVER is the largest that these can hold."""
    if not len(values):
        return values
    known = np.where(values == NEVER, values.dtype.type(0), values) if is_end else values
    low, high = int(known.min()), int(known.max())
    for dtype in (np.int8, np.int16, np.int32):
        bounds = np.iinfo(dtype)
        if bounds.min <= low and high < bounds.max:
            narrowed: Numbers = known.astype(dtype)
            if is_end:
                narrowed[values == NEVER] = bounds.max
            return narrowed
    return values


def within(ends: Numbers, place: int) -> int:
    """A place that is behind the same ends, and before NEVER as these numbers hold it."""
    return min(place, int(np.iinfo(ends.dtype).max) - 1)


def searched(values: Numbers, value: int, side: Literal["left", "right"] = "left") -> int:
    """Where a number comes among sorted ones, which may be narrower than it is."""
    bounds = np.iinfo(values.dtype)
    if not bounds.min <= value <= bounds.max:
        return len(values) if value > bounds.max else 0
    return int(np.searchsorted(values, values.dtype.type(value), side))


class Texts(NamedTuple):
    """Texts of rows: `ends` of each in `utf8`, and by row which of them; -1 is null.

    Where each row has a text of its own, they lie in the order of the rows, and `codes` is empty.
    `keys` are digests of them all where a few are to be found, and else empty.
    """

    codes: Numbers
    ends: Numbers
    utf8: npt.NDArray[np.uint8]
    keys: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, texts: pl.Series, *, is_sought: bool) -> Texts:
        """Lay texts out; where they are few, or some are null, each only once."""
        codes = np.empty(0, np.int8)
        if texts.null_count() or _are_few(texts):
            known = texts.drop_nulls().unique().sort()
            coded = texts.cast(pl.Enum(known)).to_physical().cast(pl.Int32).fill_null(-1)
            codes, texts = narrow(coded.to_numpy()), known
        utf8 = np.frombuffer((texts.str.join("").item() or "").encode(), np.uint8)
        ends = narrow(texts.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy())
        keys = _digests(texts) if is_sought else np.empty(0, np.uint32)
        return cls(codes, ends, utf8, keys)

    def take(self, places: Iterable[int]) -> list[str | None]:
        """The texts of a few rows."""
        if len(self.codes):
            return [self._text(int(self.codes[place])) for place in places]
        return [self._text(place) for place in places]

    def places_of(self, wanted: Sequence[str], first: int, last: int) -> Numbers:
        """Which rows between two places have one of some texts."""
        if len(self.codes):
            known = self._among(wanted, 0, len(self.keys))
            return first + np.flatnonzero(np.isin(self.codes[first:last], known))
        return self._among(wanted, first, last)

    def _among(self, wanted: Sequence[str], first: int, last: int) -> Numbers:
        """Which of the texts that are laid out are wanted: of equal digests, the same texts."""
        keys = _digests(pl.Series(wanted, dtype=pl.String))
        places = first + np.flatnonzero(np.isin(self.keys[first:last], keys))
        known = frozenset(wanted)
        is_one = [self._text(place) in known for place in places.tolist()]
        found: Numbers = places[np.array(is_one, bool)]
        return found

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


Column = Numbers | Nullable | Texts


class FlatRows:
    """Rows of columns of numbers and of texts."""

    def __init__(self, columns: Mapping[str, Column], num_rows: int) -> None:
        self._columns, self._num_rows = columns, num_rows

    @classmethod
    def of(cls, rows: pl.DataFrame, sought: str | None = None) -> FlatRows:
        """Lay out a frame of integers, booleans and texts, of which those of one are sought."""
        columns = {column.name: _laid_out(column, sought) for column in rows}
        return cls(columns, len(rows))

    @classmethod
    def from_arrays(cls, arrays: Arrays, num_rows: int) -> FlatRows:
        """The rows of which `arrays` gives the arrays."""
        columns: dict[str, Column] = {}
        for name in {name.partition("/")[0] for name in arrays}:
            if name in arrays:
                columns[name] = arrays[name]
            else:
                made = Texts if f"{name}/utf8" in arrays else Nullable
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

    def rows(self, places: Iterable[int], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Some columns of a few rows, as Python values."""
        wanted = np.asarray([*places], np.int64)
        return [*zip(*(self._taken(name, wanted) for name in names), strict=True)]

    def _taken(self, name: str, places: Numbers) -> list[Any]:
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return list(column[places].tolist())
        return list(column.take(places.tolist()))


def _laid_out(column: pl.Series, sought: str | None) -> Column:
    if column.dtype in {pl.String, pl.Null}:
        return Texts.of(column.cast(pl.String), is_sought=column.name == sought)
    numbers = column.cast(pl.Int64).fill_null(0).to_numpy()
    numbers = narrow(numbers, is_end=column.name in ENDS)
    return Nullable(numbers, column.is_not_null().to_numpy()) if column.null_count() else numbers


def _digests(texts: pl.Series) -> npt.NDArray[np.uint32]:
    return (texts.hash() & 0xFFFF_FFFF).cast(pl.UInt32).to_numpy()


def _are_few(texts: pl.Series) -> bool:
    sample = texts.gather_every(len(texts) // SAMPLE + 1)
    return sample.n_unique() * 2 < len(sample) and texts.n_unique() <= FEW_TEXTS
