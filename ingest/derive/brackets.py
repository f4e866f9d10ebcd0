"""Begins and ends without names, matched like brackets, all at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
NO_END = -1


def brackets(key: Ints, is_begin: Flags) -> tuple[Ints, Flags]:
    """Match each end to the latest open begin of its key.

    Takes halves in order of time. Gives the row of each begin's end (`NO_END` where there is none,
    and for ends), and which ends have no begin.

    The level is the number of brackets open. An end that takes it below all levels before, and
    below zero, has nothing to end; among the others a begin's end is the next row of its level.
    """
    end, is_lost = np.full(len(key), NO_END), np.zeros(len(key), np.bool_)
    if not len(key):
        return end, is_lost
    rows = np.argsort(key, kind="stable")
    of_key, begins = _numbered(key[rows]), is_begin[rows]
    level = _level(of_key, begins)
    lost = ~begins & (level < _lowest_before(of_key, level))
    is_lost[rows[lost]] = True
    rows, begins, of_key = rows[~lost], begins[~lost], of_key[~lost]
    place = of_key * np.int64(len(key) + 1) + _level(of_key, begins) + ~begins
    by_level = np.argsort(place, kind="stable")
    rows, begins, place = rows[by_level], begins[by_level], place[by_level]
    ended = np.flatnonzero(begins[:-1] & ~begins[1:] & (place[1:] == place[:-1]))
    end[rows[ended]] = rows[ended + 1]
    return end, is_lost


def _numbered(key: Ints) -> Small:
    """Numbers for keys that are in order."""
    return np.cumsum(np.diff(key, prepend=key[0]) != 0, dtype=np.int32)


def _level(of_key: Small, begins: Flags) -> Small:
    """How many more have begun than ended, for each key."""
    total = np.cumsum(np.where(begins, np.int8(1), np.int8(-1)), dtype=np.int32)
    first = np.flatnonzero(np.diff(of_key, prepend=-1))
    before = total[first] - np.where(begins[first], 1, -1)
    total -= np.repeat(before.astype(np.int32), np.diff(first, append=len(of_key)))
    return total


def _lowest_before(of_key: Small, level: Small) -> Ints:
    """The lowest level of a key so far, zero at most."""
    # So that each key is below the one before, and the lowest of all that of its own.
    apart = of_key * np.int64(2 * len(level) + 2)
    before = np.roll(level, 1)
    before[np.diff(of_key, prepend=-1) != 0] = 0
    lowest: Ints = np.minimum.accumulate(np.minimum(before, 0) - apart) + apart
    return np.minimum(lowest, 0)
