"""Rows gathered into columns, some tens of thousands at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

_AT_A_TIME = 1 << 16


class Rows:
    """Takes tuples, or frames, and gives a frame of the given columns."""

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

    def extend(self, frame: pl.DataFrame) -> None:
        """Take many rows; columns that are missing are null."""
        self._flush()
        missing = (pl.lit(None, self._schema[name]).alias(name)
                   for name in self._schema if name not in frame.columns)  # fmt: skip
        columns = (pl.col(name).cast(dtype) for name, dtype in self._schema.items())
        self._frames.append(frame.with_columns(missing).select(columns))
        self._num_before += len(frame)

    def frame(self) -> pl.DataFrame:
        """All rows."""
        self._flush()
        return pl.concat(self._frames)

    def drained(self) -> pl.DataFrame:
        """All rows, which are forgotten."""
        found = self.frame()
        self._frames = self._frames[:1]
        self._num_before = 0
        return found

    def _flush(self) -> None:
        if self._rows:
            self._frames.append(pl.DataFrame(self._rows, schema=self._schema, orient="row"))
            self._num_before += len(self._rows)
            self._rows.clear()
