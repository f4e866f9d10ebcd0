"""How likely a difference is where nothing changed."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyzers.gate.chance import chance_of_counts, chance_of_ranks, least_chance


def wins(theirs: list[float], ours: list[float]) -> float:
    """Of how many pairs B has the greater one: ranks stand for that."""
    return sum((x > y) + 0.5 * (x == y) for x in theirs for y in ours)


VALUES = st.lists(st.integers(0, 9).map(float), min_size=1, max_size=5)


def test_runs_that_are_all_above_the_others_are_as_unlikely_as_can_be() -> None:
    assert chance_of_ranks([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0]) == pytest.approx(1 / 35)
    assert least_chance(4, 3) == pytest.approx(1 / 35)


def test_runs_that_are_all_alike_tell_nothing() -> None:
    assert chance_of_ranks([3.0] * 4, [3.0] * 4) == 1.0


@given(VALUES, VALUES)
def test_a_chance_is_the_share_of_ways_to_deal_the_runs_that_rank_as_high(
    a: list[float], b: list[float]
) -> None:
    both = [*a, *b]
    reached, ways = wins(b, a), 0
    as_high = 0
    for chosen in combinations(range(len(both)), len(b)):
        theirs = [both[at] for at in chosen]
        ours = [both[at] for at in range(len(both)) if at not in chosen]
        ways += 1
        as_high += wins(theirs, ours) >= reached
    assert chance_of_ranks(a, b) == pytest.approx(as_high / ways)


def test_many_runs_are_drawn_and_not_all_gone_through() -> None:
    a, b = [float(number) for number in range(20)], [number + 0.5 for number in range(20)]

    assert 0.3 < chance_of_ranks(a, b) < 0.6
    assert chance_of_ranks(a, [number + 40.0 for number in range(20)]) < 0.001


@given(st.integers(0, 40), st.integers(0, 40), st.integers(1, 500), st.integers(1, 500))
def test_counts_are_as_likely_as_the_binomial_says(a: int, b: int, of_a: int, of_b: int) -> None:
    share, number = of_b / (of_a + of_b), a + b
    expected = sum(
        math.comb(number, each) * share**each * (1 - share) ** (number - each)
        for each in range(b, number + 1)
    )
    assert chance_of_counts(a, b, of_a, of_b) == pytest.approx(expected, abs=1e-9)


def test_without_steps_nothing_is_known_of_a_rate() -> None:
    assert chance_of_counts(3, 3, 0, 10) == 1.0
    assert chance_of_counts(3, 3, 10, 0) == 1.0
    assert chance_of_counts(3, 0, 10, 10) == 1.0
