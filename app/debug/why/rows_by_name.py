"""Rows of a table by whom they are about, found without a look at the others."""

from __future__ import annotations

from typing import Any

import polars as pl

Row = dict[str, Any]


class RowsByName:
    """The rows of one table in the order of their `seq`, by the name in one of its columns."""

    def __init__(self, rows: pl.DataFrame, name: str) -> None:
        self.rows = rows
        self._name = name
        places = rows.select(name).with_row_index("place").drop_nulls()
        self._places = places.group_by(name, maintain_order=True).agg("place").rechunk()

    def __contains__(self, name: object) -> bool:
        return name in self._places[self._name]

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, name: str | int) -> list[Row]:
        """All rows about somebody, in their order."""
        found = self._places.filter(pl.col(self._name) == name)["place"]
        return self.rows[found[0]].to_dicts() if len(found) else []

    def names(self) -> list[Any]:
        """Everybody whom a row is about, in order of the first."""
        return self._places[self._name].to_list()
