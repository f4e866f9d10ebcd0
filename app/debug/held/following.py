"""Which row of the same group comes next, for millions of rows and groups.

Arrays, as windows of Polars over millions of groups take seconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.app.debug.held.by_name import grouped
from stepscope.app.debug.held.narrow_numbers import NEVER
from stepscope.ingest.derive.distinct_numbers import order_of

MOST_CODES = 1 << 31
"""Two codes fit into one number."""
Places = npt.NDArray[np.int64]


def codes(values: pl.Series) -> Places:
    """A number from 0 on for each value, less than MOST_CODES; none of the values is null."""
    if values.dtype.is_integer():
        numbers = values.cast(pl.Int64).to_numpy()
        least, most = (int(each(numbers, initial=0)) for each in (np.min, np.max))
        if most - least < MOST_CODES:
            return numbers - least
        return values.rank("dense").cast(pl.Int64).to_numpy()
    found = grouped(values)
    if not found.is_exact:
        return values.cast(pl.Categorical).to_physical().cast(pl.Int64).to_numpy()
    coded = np.empty(len(values), np.int64)
    coded[found.places] = np.cumsum(found.is_next) - 1
    return coded


def next_place(group: Places, is_wanted: npt.NDArray[np.bool_], place: Places) -> Places:
    """The place of the next row of the same group that is wanted; NEVER where none comes.

    The rows are in the order of their places.
    """
    if not len(group):
        return place
    order = order_of(group)
    wanted = np.where(is_wanted[order], np.arange(len(group)), len(group))
    following = np.append(np.minimum.accumulate(wanted[::-1])[::-1][1:], len(group))
    of_group = group[order]
    is_there = following < len(group)
    is_there[is_there] &= of_group[following[is_there]] == of_group[is_there]
    found = np.full(len(group), NEVER)
    found[order[is_there]] = place[order][following[is_there]]
    return found


def seq_of(place: Places, seq: Places) -> Places:
    """The `seq` of the rows at some places, of which NEVER is none."""
    if not len(seq):
        return place
    return np.where(place == NEVER, NEVER, seq[np.minimum(place, len(seq) - 1)])


def by_group(group: Places) -> tuple[Places, npt.NDArray[np.bool_], Places]:
    """Rows sorted by group, whether each so sorted is the first of its group, and by row the next.

    The next row of the same group is NEVER where none comes.
    """
    order = order_of(group)
    of_group = group[order]
    is_first = np.append(True, of_group[1:] != of_group[:-1])[: len(group)]
    return order, is_first, next_of_group(order, is_first)


def next_of_group(order: Places, is_first: npt.NDArray[np.bool_]) -> Places:
    """By row the next of its group; NEVER where none comes. Takes what `by_group` gives."""
    following = np.full(len(order), NEVER)
    follows = ~is_first[1:]
    following[order[:-1][follows]] = order[1:][follows]
    return following
