"""A value over a run as a line of blocks; a column of it shows the most that was in its time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

LEVELS = "▁▂▃▄▅▆▇█"
UNKNOWN = " "


@dataclass(frozen=True, slots=True)
class Timeline:
    """Values that hold from their times on, sorted, and from when to when the run goes."""

    ts_ns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    bounds_ns: tuple[int, int]

    def at(self, ts_ns: int) -> float | None:
        """The value that holds at a time; None before the first."""
        place = int(np.searchsorted(self.ts_ns, ts_ns, "right")) - 1
        return float(self.values[place]) if place >= 0 else None

    def column(self, ts_ns: int, width: int) -> int:
        """The column of a line of `width` in which a time is."""
        first_ns, last_ns = self.bounds_ns
        share = (ts_ns - first_ns) / max(last_ns - first_ns, 1)
        return min(max(int(share * width), 0), width - 1)


def sparkline(line: Timeline, width: int) -> str:
    """Draw a line of `width` glyphs, from the least value to the most; a blank before the first.

    What never changes is as high as it can be, unless it is 0 or less.
    """
    first_ns, last_ns = line.bounds_ns
    edges = np.linspace(first_ns, last_ns, width + 1)
    places = np.searchsorted(line.ts_ns, edges, "right").tolist()
    most = []
    for begin, end in pairwise(places):
        held = line.values[max(begin - 1, 0) : end]
        most.append(float(held.max()) if end else None)
    return blocks(most, (float(line.values.min()), float(line.values.max())))


def blocks(values: Iterable[float | None], bounds: tuple[float, float]) -> str:
    """A glyph for each value, from the least of the bounds to the most; a blank where none is."""
    return "".join(UNKNOWN if value is None else _glyph(value, *bounds) for value in values)


def _glyph(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else float(high > 0)
    return LEVELS[min(int(share * len(LEVELS)), len(LEVELS) - 1)]
