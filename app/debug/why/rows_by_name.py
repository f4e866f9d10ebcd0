"""Rows of a table by whom they are about, found without a look at the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from stepscope.app.debug.held.flat_rows import FlatRows
from stepscope.app.debug.held.following import by_group, codes

Row = dict[str, Any]


class RowsOfRequests:
    """Rows about requests, in the order of their `seq`, of a session's index."""

    def __init__(self, rows: FlatRows, columns: Sequence[str]) -> None:
        self._rows, self._columns = rows, columns

    def __contains__(self, name: str) -> bool:
        return len(self._rows.places_of("request", name)) > 0

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, name: str) -> list[Row]:
        """All rows about a request, in their order."""
        found = self._rows.rows(self._rows.places_of("request", name), self._columns)
        return [dict(zip(self._columns, row, strict=True)) for row in found]

    def names(self) -> set[str]:
        """Everybody whom a row is about."""
        every = self._rows.rows(range(len(self)), ["request"])
        return {name for (name,) in every if name is not None}


class RowsByName:
    """The rows of one table in the order of their `seq`, by the name in one of its columns."""

    def __init__(self, rows: pl.DataFrame, name: str) -> None:
        self.rows = rows
        named = rows.select(name).with_row_index("place").drop_nulls()
        order, is_first, _ = by_group(codes(named[name]))
        self._places = named["place"].gather(order)
        starts = np.flatnonzero(is_first)
        self._names = named[name].gather(order[starts])
        self._bounds = np.append(starts, len(order)).tolist()

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str | int) and self._names.index_of(name) is not None

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, name: str | int) -> list[Row]:
        """All rows about somebody, in their order."""
        found = self._names.index_of(name)
        if found is None:
            return []
        return self.rows[self._places[self._bounds[found] : self._bounds[found + 1]]].to_dicts()

    def names(self) -> list[Any]:
        """Everybody whom a row is about, in order of the first."""
        first = self._places.gather(self._bounds[:-1])
        return self._names.gather(first.arg_sort()).to_list()
