"""Rows of recorded tables at a step or a place in the order, with those around it read at once.

A table on disk is read by the thousands of rows, for one row as for many: whoever goes from step to
step finds the next ones read, and whoever comes back what was read there before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

import polars as pl

from stepscope.ingest.trace import Trace

Column = Literal["step", "seq"]
MOST_AROUND: dict[Column, int] = {"step": 32, "seq": 512}
"""How far around what is asked for rows are read, on either side."""
WORTH_ROWS = 8_192
"""Around a step about so many rows are read at most, by how many a step has in the mean."""
MOST_HELD = 4
"""So many places that were read last are held."""
LEAST, MOST = -(1 << 63), (1 << 63) - 1


class _Window(NamedTuple):
    low: int
    high: int
    rows: pl.DataFrame


class NearRows:
    """Rows of one rank; of each table those around the last places that were read are held."""

    def __init__(self, trace: Trace, rank: int) -> None:
        self._trace, self._rank = trace, rank
        self._held: dict[tuple[str, Column], deque[_Window]] = {}

    def at(self, column: Column, value: int | None, tables: Sequence[str]) -> list[pl.DataFrame]:
        """The rows of some tables whose step or place is a value, as these lie there."""
        if value is None:
            return pl.collect_all([self._trace.table(table).head(0) for table in tables])
        found = {
            table: window
            for table in tables
            for window in self._held.get((table, column), ())
            if window.low <= value <= window.high
        }
        found |= self._read(column, value, [table for table in tables if table not in found])
        return [found[table].rows.filter(pl.col(column) == value) for table in tables]

    def _read(self, column: Column, value: int, tables: Sequence[str]) -> dict[str, _Window]:
        bounds = {}
        for table in tables:
            around = self._around(column, table)
            bounds[table] = max(value - around, LEAST), min(value + around, MOST)
        own = pl.col("rank") == self._rank
        wanted = [
            self._trace.table(table).filter(own, pl.col(column).is_between(*bounds[table]))
            for table in tables
        ]
        read = zip(tables, pl.collect_all(wanted), strict=True) if tables else ()
        found = {table: _Window(*bounds[table], rows) for table, rows in read}
        for table, window in found.items():
            held = self._held.setdefault((table, column), deque(maxlen=MOST_HELD))
            held.append(window)
        return found

    def _around(self, column: Column, table: str) -> int:
        if column == "seq":
            return MOST_AROUND[column]
        num_rows, num_steps = self._trace.num_rows(table), self._trace.num_rows("steps")
        return min(MOST_AROUND[column], WORTH_ROWS * num_steps // max(2 * num_rows, 1))
