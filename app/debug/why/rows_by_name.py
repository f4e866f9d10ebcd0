"""Rows of a table by whom they are about, found without a look at the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from stepscope.app.debug.held.following import by_group, codes

Row = dict[str, Any]


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
