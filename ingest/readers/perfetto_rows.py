"""Rows gathered into columns, some tens of thousands at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

_AT_A_TIME = 1 << 16


class Rows:
    """Takes tuples and gives a frame of the given columns."""

    def __init__(self, schema: Mapping[str, type[pl.DataType]]) -> None:
        self._schema = dict(schema)
        self._rows: list[tuple[Any, ...]] = []
        self._frames = [pl.DataFrame(schema=self._schema)]
        self._num_before = 0

    def __len__(self) -> int:
        return self._num_before + len(self._rows)

    def add(self, row: tuple[Any, ...]) -> None:
        """Take a row."""
        self._rows.append(row)
        if len(self._rows) >= _AT_A_TIME:
            self._flush()

    def frame(self) -> pl.DataFrame:
        """All rows."""
        self._flush()
        return pl.concat(self._frames)

    def _flush(self) -> None:
        self._frames.append(pl.DataFrame(self._rows, schema=self._schema, orient="row"))
        self._num_before += len(self._rows)
        self._rows.clear()
