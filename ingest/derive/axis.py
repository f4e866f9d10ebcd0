"""Tracks by number, and their times one track after the other on one axis.

On such an axis one sort and one search serve all tracks: what comes before a time may be of another
track, but then there is nothing before it on its own.
"""

from __future__ import annotations

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


def on_one_axis(track: Tracks, *times: Ints) -> list[Ints]:
    """Move times, by a row's track, so that all of a track come before all of the next."""
    if not track.size:
        return list(times)
    first = min(int(each.min()) for each in times)
    length = max(int(each.max()) for each in times) - first + 1
    if length * (int(track.max()) + 1) >> 63:
        _, rank = np.unique(np.concatenate(times), return_inverse=True)
        return on_one_axis(track, *np.split(rank, len(times)))
    moved = track * np.int64(length) - first
    return [each + moved for each in times]


def latest(track: Tracks, ts_ns: Ints, begun_track: Tracks, begun_ns: Ints) -> Ints:
    """For each time on a track the place of what began there last, by then (`NONE`: nothing).

    What begins later stands behind what begins earlier; at one time the last place counts.
    """
    (key,) = on_one_axis(np.concatenate((begun_track, track)), np.concatenate((begun_ns, ts_ns)))
    num = len(begun_track)
    order = np.argsort(key[:num], kind="stable")
    place = np.searchsorted(key[:num], key[num:], side="right", sorter=order) - 1
    found = np.append(order, NONE)[place]
    is_there = np.append(begun_track, 0)[found] == track
    return np.where(is_there, found, NONE)
