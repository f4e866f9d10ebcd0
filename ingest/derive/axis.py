"""Tracks by number, and their times one track after the other on one axis.

On such an axis one sort and one search serve all tracks: what comes before a time may be of another
track, but then there is nothing before it on its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

Ints = npt.NDArray[np.int64]
Tracks = npt.NDArray[np.integer]
NONE = -1


def numbered(texts: pl.Series) -> tuple[pl.Series, Tracks]:
    """Give the different texts of a column, of an Enum its categories, and each row's number."""
    kind = texts.dtype
    known = kind if isinstance(kind, pl.Enum) else pl.Enum(texts.unique(maintain_order=True))
    return known.categories, texts.cast(known).to_physical().to_numpy()


def different(texts: pl.Series) -> list[str]:
    """Give the different texts of a column; of an Enum its categories, of which no row is read."""
    kind = texts.dtype
    known = kind.categories if isinstance(kind, pl.Enum) else texts.drop_nulls().unique()
    return known.to_list()


@dataclass(frozen=True, slots=True)
class Axis:
    """Each track has `length` of it, from the `first` of all times on.

    Where that many numbers are not to be had, times count by their place among all, the `ranks`.
    """

    first: int
    length: int
    ranks: Ints | None = None

    @classmethod
    def of(cls, tracks: Iterable[Tracks], times: Iterable[Ints]) -> Axis:
        """Lay it out for all of these tracks and times."""
        some = [each for each in times if each.size] or [np.zeros(1, np.int64)]
        first = int(min(each.min() for each in some))
        length = int(max(each.max() for each in some)) - first + 1
        num_tracks = 1 + max(int(each.max(initial=0)) for each in tracks)
        if num_tracks * length >> 63:
            ranks = np.unique(np.concatenate(some))
            return cls(0, len(ranks), ranks)
        return cls(first, length)

    def at(self, track: Tracks, ts_ns: Ints) -> Ints:
        """Where times of tracks are on it."""
        since = ts_ns if self.ranks is None else np.searchsorted(self.ranks, ts_ns)
        place: Ints = track * np.int64(self.length) - self.first + since
        return place


def latest(track: Tracks, ts_ns: Ints, begun_track: Tracks, begun_ns: Ints) -> Ints:
    """For each time on a track the place of what began there last, by then (`NONE`: nothing).

    At one time the last place counts.
    """
    axis = Axis.of((track, begun_track), (ts_ns, begun_ns))
    begun = axis.at(begun_track, begun_ns)
    order = np.argsort(begun, kind="stable")
    place = np.searchsorted(begun, axis.at(track, ts_ns), side="right", sorter=order) - 1
    found = np.append(order, NONE)[place]
    found[np.append(begun_track, 0)[found] != track] = NONE
    return found
