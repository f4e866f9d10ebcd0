"""What a table is made of: columns with a type, a unit in their name, and a meaning.

It imports the standard library only, as `schema` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Type(StrEnum):
    """What a column holds; strings are interned in the journal and plain text in Parquet."""

    I64 = "i64"
    I32 = "i32"
    F64 = "f64"
    STR = "str"
    BOOL = "bool"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name (with its unit), type, meaning, and the values it may take."""

    name: str
    type: Type
    meaning: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table: what one row is, and its columns in the order in which they are recorded.

    `required` columns must be given on every row; the others default to null.
    """

    name: str
    row: str
    columns: tuple[Column, ...]
    required: tuple[str, ...]

    @property
    def given(self) -> tuple[Column, ...]:
        """The columns that are given with a row: the recorder knows the rank, and counts rows."""
        return tuple(each for each in self.columns if each.name not in ("rank", "seq"))

    @property
    def is_of_state(self) -> bool:
        """Whether its rows are counted with those of other tables, in `seq`."""
        return any(column.name == "seq" for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names, in order."""
        return tuple(column.name for column in self.columns)


def i64(name: str, meaning: str) -> Column:
    """Make a column of whole numbers, times among them."""
    return Column(name, Type.I64, meaning)


def i32(name: str, meaning: str) -> Column:
    """Make a column of small whole numbers, such as ranks and counts of requests."""
    return Column(name, Type.I32, meaning)


def text(name: str, meaning: str, values: tuple[str, ...] = ()) -> Column:
    """Make a column of texts, of these `values` alone if any are named."""
    return Column(name, Type.STR, meaning, values)


def flag(name: str, meaning: str) -> Column:
    """Make a column that is true or false."""
    return Column(name, Type.BOOL, meaning)
