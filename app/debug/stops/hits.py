"""Where a stop is hit: rows of a table that meet a condition, in the order of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


class Here(NamedTuple):
    """A place in the order of the run: by time, then by rank, then by what came first in it."""

    ts_ns: int
    rank: int
    order: int


@dataclass(frozen=True, slots=True)
class Hits:
    """Places of a table's rows, sorted as `Here` is; `row` is a row's number in its table.

    `step` is the step at whose position a hit stands, -1 where it stands at a time in between.
    """

    table: str
    ts_ns: Numbers
    rank: Numbers
    order: Numbers
    step: Numbers
    row: Numbers

    @classmethod
    def sorted(cls, table: str, columns: tuple[Numbers, ...]) -> Hits:
        """Put columns (ts_ns, rank, order, step, row) into order."""
        ts_ns, rank, order, _, row = columns
        if _is_sorted(ts_ns) and not rank.any():
            return cls(table, *columns)
        place = np.lexsort((row, order, rank, ts_ns))
        return cls(table, *(column[place] for column in columns))

    def __len__(self) -> int:
        return len(self.ts_ns)

    def here(self, place: int) -> Here:
        """Where a hit is."""
        return Here(int(self.ts_ns[place]), int(self.rank[place]), int(self.order[place]))

    def after(self, here: Here) -> int | None:
        """The first hit behind a place; None where there is none."""
        place = self._place(here, "right")
        return place if place < len(self) else None

    def before(self, here: Here) -> int | None:
        """The last hit before a place; None where there is none."""
        place = self._place(here, "left") - 1
        return place if place >= 0 else None

    def num_until(self, here: Here) -> int:
        """How many hits are before a place or at it."""
        return self._place(here, "right")

    def is_at(self, here: Here) -> bool:
        """Whether a hit is at a place."""
        return self._place(here, "left") < self._place(here, "right")

    def between(self, first: Here, last: Here) -> range:
        """Hits behind one place, up to and at another."""
        return range(self._place(first, "right"), self._place(last, "right"))

    def _place(self, here: Here, side: str) -> int:
        """Where a place would stand among the hits, by one column after the other."""
        low, high = 0, len(self)
        columns = (self.ts_ns, self.rank, self.order)
        for column, value in zip(columns, here, strict=True):
            within = column[low:high]
            high = low + int(np.searchsorted(within, value, "right"))
            low += int(np.searchsorted(within, value, "left"))
            if low == high:
                return low
        return high if side == "right" else low


def _is_sorted(values: Numbers) -> bool:
    return bool(np.all(values[1:] >= values[:-1])) if len(values) > 1 else True
