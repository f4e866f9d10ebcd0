"""Where the level of a short, noisy series changes, and how likely that is where nothing changed.

Binary segmentation: the strongest change of the series is looked for, and where it stands, the
parts before and behind it are looked at in the same way. How strong a change at a place is says the
rank sum of the values before it (Wilcoxon), in standard deviations of what it is where the values
come in any order; the place where that is most is the change. How likely so much is anywhere in
the series says a permutation test of that maximum, so that it is corrected for the many places. It
needs no assumption about how values are spread, only that in a series without a change any order
of them is as likely as another.

What rises and falls again can leave no place at which the whole series changes. So where it has
none, its halves, quarters and so on are looked at, each overlapping the next by half (seeded
intervals); all of them make one more maximum, whose test gets what the first one left of the
chance.

Sources: Pettitt, A Non-Parametric Approach to the Change-Point Problem (1979); Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses (2005); Scott and Knott, A Cluster Analysis Method for
Grouping Means in the Analysis of Variance (1974), for the segmentation; Kovács et al., Seeded
Binary Segmentation (2023), for the intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations
from statistics import median
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

LEAST_ON_A_SIDE = 3
"""So many values make a level: one run, or two, that are out of line are no change of it."""
LEAST = 2 * LEAST_ON_A_SIDE
MOST_EXACT = 40_320
"""So many orders, those of 8 values, are all gone through; of more, some are drawn."""
DRAWN_PER_CHANCE, MOST_DRAWN = 40, 200_000
"""Orders that are drawn, times the chance that is asked for: so finely is a chance known."""
AT_ONCE = 500_000
"""Strengths of drawn orders that are in memory at once."""
FIRST_DRAWN = 64
"""Orders that are drawn at first, and then twice as many each time: of noise few will do."""
OF_THE_WHOLE = 0.75
"""The part of a chance that the whole series gets, where there are intervals to look at, too."""

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A change of the level: the value at `place` is the first of the new one.

    The levels are the medians up to the neighbouring changes. `chance` is how likely so strong a
    change is anywhere in that part of the series where nothing changed: 0 to 1.
    """

    place: int
    before: float
    after: float
    chance: float


def change_points(values: Sequence[float], chance: float) -> tuple[ChangePoint, ...]:
    """Find the changes, in order; of a series without one any is found by at most this chance.

    A part behind or before a change gets half of the chance of the whole it is a part of.
    """
    found = sorted(_found(np.asarray(values, np.float64), 0, chance))
    edges = [0, *(place for place, _ in found), len(values)]
    levels = [median(values[first:last]) for first, last in pairwise(edges)] if values else []
    return tuple(
        ChangePoint(place, before, after, likely)
        for (place, likely), (before, after) in zip(found, pairwise(levels), strict=True)
    )


def least_values(chance: float) -> int:
    """The fewest values among which any change can be told from chance by so little a chance.

    Of n different values the clearest change, half of them above all others, comes up or down in 2
    of so many ways to share them out.
    """
    return next(
        num
        for num in range(LEAST, 2_000)
        if 2 / math.comb(num, num // 2) <= chance * (OF_THE_WHOLE if num >= 2 * LEAST else 1)
    )


class _Places(NamedTuple):
    """Places at which a series may change, each as seen from an interval of it."""

    first: Places
    place: Places
    last: Places

    @classmethod
    def of(cls, intervals: Iterable[tuple[int, int]]) -> _Places:
        """Every place of these intervals that leaves enough values on both sides."""
        every = [
            (first, place, last)
            for first, last in intervals
            for place in range(first + LEAST_ON_A_SIDE, last - LEAST_ON_A_SIDE + 1)
        ]
        return cls(*np.array(every, np.int64).reshape(-1, 3).T)

    def strengths(self, orders: Floats) -> Floats:
        """Of each order of ranks, by rows, how strong a change at each place is, up or down."""
        num = orders.shape[1]
        variance = float((orders[0] ** 2).sum()) / (num - 1)  # the same in any order
        sums = np.zeros((len(orders), num + 1))
        np.cumsum(orders, axis=1, out=sums[:, 1:])
        before, whole = self.place - self.first, self.last - self.first
        start = sums[:, self.first]
        expected = (sums[:, self.last] - start) * (before / whole)
        deviation = np.sqrt(variance * before * (whole - before) / whole)
        strengths: Floats = np.abs(sums[:, self.place] - start - expected) / deviation
        return strengths


def _found(values: Floats, first: int, chance: float) -> Iterator[tuple[int, float]]:
    strongest = _strongest(values, chance)
    if strongest is None:
        return
    place, likely = strongest
    yield first + place, likely
    yield from _found(values[:place], first, chance / 2)
    yield from _found(values[place:], first + place, chance / 2)


def _strongest(values: Floats, chance: float) -> tuple[int, float] | None:
    """The place of the strongest change and how likely it is, None where it is likelier than so."""
    num = len(values)
    ranks = _centred_ranks(values)
    if num < LEAST or not ranks.any():
        return None  # too short, or all are equal
    intervals = [*_seeded(num)]
    share = OF_THE_WHOLE if intervals else 1.0
    for part, looked_at in ((share, [(0, num)]), (1 - share, intervals)):
        if not looked_at:
            continue
        places = _Places.of(looked_at)
        strengths = places.strengths(ranks[None, :])[0]
        at = int(np.argmax(strengths))
        likely = _chance_of(ranks, places, float(strengths[at]), chance * part)
        if likely is not None:
            return int(places.place[at]), likely / part
    return None


def _seeded(num: int) -> Iterator[tuple[int, int]]:
    """Halves of a series, quarters and so on, each overlapping the next by half."""
    parts = 2
    while num / parts >= LEAST:
        length = num / parts
        for half in range(2 * parts - 1):
            yield round(half * length / 2), round(half * length / 2 + length)
        parts *= 2


def _centred_ranks(values: Floats) -> Floats:
    """Ranks less their mean; equal values have the mean of theirs."""
    ordered = np.sort(values)
    low, high = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    ranks: Floats = (low + high + 1) / 2 - (len(values) + 1) / 2
    return ranks


def _chance_of(ranks: Floats, places: _Places, strength: float, most: float) -> float | None:
    """How likely so strong a change is at any of the places, in any order; None above `most`."""
    num = len(ranks)
    least = strength * (1 - 1e-9)  # equal ones differ by how they were added
    if math.factorial(num) <= MOST_EXACT:
        every = np.array(list(permutations(ranks.tolist())))
        share = float(np.mean(places.strengths(every).max(axis=1) >= least))
        return share if share <= most else None
    drawn = min(math.ceil(DRAWN_PER_CHANCE / most), MOST_DRAWN)
    generator = np.random.default_rng(0)
    as_strong, done, rows = 1, 0, FIRST_DRAWN  # what was seen is one of the orders
    while done < drawn:
        orders = np.tile(ranks, (min(rows, drawn - done), 1))
        generator.permuted(orders, axis=1, out=orders)
        as_strong += int((places.strengths(orders).max(axis=1) >= least).sum())
        if as_strong > most * (drawn + 1):
            return None  # the orders that are left cannot make it less
        done += len(orders)
        rows = max(min(2 * rows, AT_ONCE // len(places.place)), 1)
    return as_strong / (drawn + 1)
