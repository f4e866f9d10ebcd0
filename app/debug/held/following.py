"""Which row of the same group comes next, for millions of rows and groups.

Arrays, as windows of Polars over millions of groups take seconds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from stepscope.ingest.derive.distinct_numbers import order_of

NEVER = 1 << 62
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
    coded = _codes_by_digest(values)
    if coded is None:
        coded = values.cast(pl.Categorical).to_physical().cast(pl.Int64).to_numpy()
    return coded


def _codes_by_digest(values: pl.Series) -> Places | None:
    """Codes in the order of digests, which are sorted fast; None where two values share theirs."""
    digests = values.hash().to_numpy()
    low = np.uint64((1 << len(values).bit_length()) - 1)
    both = digests & ~low | np.arange(len(values), dtype=np.uint64)
    both.sort()
    order = (both & low).astype(np.int64)
    in_order, by_digest = digests[order], values.gather(order)
    is_next = np.append(False, in_order[1:] != in_order[:-1])[: len(values)]
    # Each value lies in one run, and each run has one value.
    is_same = by_digest.eq_missing(by_digest.shift()).to_numpy()
    if (is_next[1:] == is_same[1:]).any() or (in_order[1:] < in_order[:-1]).any():
        return None
    coded = np.empty(len(values), np.int64)
    coded[order] = np.cumsum(is_next)
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
    following = np.full(len(group), NEVER)
    follows = np.flatnonzero(~is_first)
    following[order[follows - 1]] = order[follows]
    return order, is_first, following
