"""Some columns of a table's rows, read as they are needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import polars as pl

from stepscope.app.timeline.spans.packed import Ints

AT_ONCE = 1 << 16
"""Rows that are read together of a table that has more than `WHOLE`."""
WHOLE = 1 << 20
MOST_KEPT = 256
"""How often `AT_ONCE` rows are kept."""


class KeptRows:
    """Rows by their numbers: of a large table only those that are near the ones asked for are read.

    `rows` has to give a part of itself without the rest; `also` makes of such a part what is kept.
    """

    def __init__(
        self, rows: pl.LazyFrame, num_rows: int, also: Callable[[pl.DataFrame], pl.DataFrame]
    ) -> None:
        self._rows, self._also = rows, also
        self._at_once = AT_ONCE if num_rows > WHOLE else max(num_rows, 1)
        self._part = lru_cache(maxsize=MOST_KEPT)(self._read)

    def take(self, numbers: Ints) -> list[tuple[Any, ...]]:
        """The rows of some numbers."""
        which, place = np.unique(numbers // self._at_once, return_inverse=True)
        parts = [self._part(part) for part in which.tolist()]
        if not parts:
            return []
        before = np.cumsum([0, *map(len, parts[:-1])])
        rows = pl.concat(parts) if len(parts) > 1 else parts[0]
        told: list[tuple[Any, ...]] = rows[
            numbers - (which * self._at_once - before).take(place)
        ].rows()
        return told

    def _read(self, part: int) -> pl.DataFrame:
        return self._also(self._rows.slice(part * self._at_once, self._at_once).collect())
