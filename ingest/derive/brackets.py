"""Begins and ends without names, matched like brackets, all at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
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
    begins = is_begin[rows]
    of_key = np.cumsum(np.diff(key[rows], prepend=key[rows[0]]) != 0)
    level = _level(of_key, np.where(begins, 1, -1))
    lost = ~begins & (level < _lowest_before(of_key, level))
    is_lost[rows[lost]] = True
    rows, begins, of_key = rows[~lost], begins[~lost], of_key[~lost]
    inside = _level(of_key, np.where(begins, 1, -1)) + ~begins
    by_level = np.lexsort((inside, of_key))
    rows, begins = rows[by_level], begins[by_level]
    inside, of_key = inside[by_level], of_key[by_level]
    alike = (inside[1:] == inside[:-1]) & (of_key[1:] == of_key[:-1])
    ended = np.flatnonzero(begins[:-1] & ~begins[1:] & alike)
    end[rows[ended]] = rows[ended + 1]
    return end, is_lost


def _level(of_key: Ints, change: Ints) -> Ints:
    """Sums of changes, from zero for each key."""
    total = np.cumsum(change)
    first = np.flatnonzero(np.diff(of_key, prepend=-1))
    before = total[first] - change[first]
    return total - np.repeat(before, np.diff(first, append=len(of_key)))


def _lowest_before(of_key: Ints, level: Ints) -> Ints:
    """The lowest level of a key so far, zero at most."""
    # So that each key is below the one before, and the lowest of all that of its own.
    apart = of_key * (2 * len(level) + 2)
    before = np.where(np.diff(of_key, prepend=-1) != 0, 0, np.roll(level, 1))
    return np.minimum(np.minimum.accumulate(np.minimum(before, 0) - apart) + apart, 0)
