"""How likely a difference is where nothing changed: exact tests of few runs, and of counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from random import Random

MOST_EXACT = 50_000
"""So many ways to share out the runs are all gone through; of more, as many are drawn."""


def chance_of_ranks(a: Sequence[float], b: Sequence[float]) -> float:
    """How likely the runs of B rank as high as they do, or higher, were all alike: 0 to 1.

    The rank-sum test, one-sided and exact; equal values share their ranks. Source: Wilcoxon,
    Individual Comparisons by Ranking Methods (1945).
    """
    ranks = _ranks([*a, *b])
    reached = sum(ranks[len(a) :])
    ways = math.comb(len(ranks), len(b))
    if ways <= MOST_EXACT:
        sums = [sum(chosen) for chosen in combinations(ranks, len(b))]
    else:
        drawn = Random(0)  # noqa: S311 - it draws runs, it guards nothing
        sums = [reached, *(sum(drawn.sample(ranks, len(b))) for _ in range(MOST_EXACT))]
    return sum(each >= reached for each in sums) / len(sums)


def least_chance(num_a: int, num_b: int) -> float:
    """The least that `chance_of_ranks` gives of so many runs: no difference is less likely."""
    return 1 / math.comb(num_a + num_b, num_b)


def chance_of_counts(a: int, b: int, exposed_a: int, exposed_b: int) -> float:
    """How likely B has as many or more of all events, had both the same rate: 0 to 1.

    Events are counted over so many steps, `exposed`, of each. The conditional test of two Poisson
    rates, one-sided and exact. Source: Przyborowski and Wilenski, Homogeneity of Results in Testing
    Samples from Poisson Series (1940).
    """
    if not (b and exposed_a and exposed_b):
        return 1.0
    share = exposed_b / (exposed_a + exposed_b)
    return math.fsum(_binomial(a + b, each, share) for each in range(b, a + b + 1))


def _binomial(number: int, times: int, share: float) -> float:
    ways = math.lgamma(number + 1) - math.lgamma(times + 1) - math.lgamma(number - times + 1)
    return math.exp(ways + times * math.log(share) + (number - times) * math.log1p(-share))


def _ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1; equal ones have the mean of theirs."""
    ordered = sorted(values)
    first = {value: place for place, value in reversed([*enumerate(ordered, 1)])}
    return [first[value] + (ordered.count(value) - 1) / 2 for value in values]
