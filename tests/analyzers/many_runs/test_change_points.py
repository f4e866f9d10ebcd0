"""Change points: what is noise shows none but as seldom as is said, and what changed is found."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from stepscope.analyzers.many_runs.change_points import (
    _centred_ranks,
    _chance_of,
    _Places,
    change_points,
    least_values,
)
from tests.looped import looped
from tests.tiers import sampled, slow

METRICS = 10
CHANCE = 0.05 / METRICS
SPREADS = {
    "normal": lambda random, shape: random.normal(size=shape),
    "heavy-tailed": lambda random, shape: random.standard_t(2, size=shape),
    "skewed": lambda random, shape: random.lognormal(sigma=1.5, size=shape),
    "counts with many equal": lambda random, shape: random.poisson(0.5, size=shape).astype(float),
}


@slow
@pytest.mark.parametrize("num", sampled([50, 200], [50]))
@looped("spread", SPREADS)
def test_at_most_1_in_20_tables_of_mere_noise_has_any_change(spread: str, num: int) -> None:
    random = np.random.default_rng(7)
    tables = SPREADS[spread](random, (num, METRICS, 30))

    alarms = sum(any(change_points(line.tolist(), CHANCE) for line in table) for table in tables)

    # Three standard deviations of what chance makes of the tables above those that are promised.
    assert alarms <= num * 0.05 + 3 * np.sqrt(num * 0.05 * 0.95)


@slow
def test_beside_a_change_noise_shows_no_other_more_often_than_is_said() -> None:
    random = np.random.default_rng(8)
    lines = random.normal(size=(100, 40))
    lines[:, 20:] += 6

    found = [change_points(line.tolist(), 0.05) for line in lines]

    assert all(20 in {each.place for each in changes} for changes in found)
    assert sum(len(changes) > 1 for changes in found) <= 5 + 3 * np.sqrt(100 * 0.05 * 0.95)


@slow
@pytest.mark.parametrize("num", sampled([30, 100], [30]))
def test_a_shift_of_three_sigma_with_eight_runs_on_each_side_is_found(num: int) -> None:
    random = np.random.default_rng(9)
    lines = random.normal(size=(num, 16))
    lines[:, 8:] += 3

    found = [change_points(line.tolist(), CHANCE) for line in lines]

    assert sum(len(changes) == 1 for changes in found) >= 0.9 * num
    places = [change.place for changes in found for change in changes]
    assert sum(7 <= place <= 9 for place in places) >= 0.9 * len(places)


def test_up_and_down_again_are_two_changes_with_their_levels() -> None:
    random = np.random.default_rng(10)
    line = random.normal(size=60)
    line[20:40] += 5

    up, down = change_points(line.tolist(), CHANCE)

    assert (up.place, down.place) == (20, 40)
    assert up.before == pytest.approx(np.median(line[:20]))
    assert up.after == down.before == pytest.approx(np.median(line[20:40]))
    assert down.after == pytest.approx(np.median(line[40:]))


def test_one_run_that_is_far_out_of_line_is_no_change() -> None:
    line = np.random.default_rng(11).normal(size=30)
    line[[12, 29]] = 1_000

    assert change_points(line.tolist(), CHANCE) == ()


def test_the_answer_is_the_same_each_time() -> None:
    line = [*np.random.default_rng(12).normal(size=30), *np.random.default_rng(13).normal(2, 1, 30)]

    assert change_points(line, CHANCE) == change_points(line, CHANCE) != ()


def test_500_runs_are_told_apart_as_well() -> None:
    line = np.random.default_rng(14).normal(size=500)
    line[400:] += 1

    [change] = change_points(line.tolist(), CHANCE)

    assert 390 <= change.place <= 410


@looped("values", [[], [1.0], [3.0] * 5, [3.0] * 400, [1, 2, 3, 4, 5]])
def test_what_is_too_short_or_always_the_same_has_none(values: list[float]) -> None:
    assert change_points(values, 0.05) == ()


def test_of_few_values_the_chance_is_that_of_every_order() -> None:
    ranks = _centred_ranks(np.array([1.0, 2, 3, 7, 8, 9]))
    places = _Places.of([(0, 6)])
    strength = float(places.strengths(ranks[None, :]).max())

    in_half = [{*order[:3]} in ({-2.5, -1.5, -0.5}, {0.5, 1.5, 2.5})
               for order in permutations(ranks.tolist())]  # fmt: skip
    assert _chance_of(ranks, places, strength, 1.0) == pytest.approx(np.mean(in_half)) == 0.1


@looped("chance", [0.05, 0.005])
def test_below_the_fewest_values_nothing_is_found_and_with_them_the_clearest_change(
    chance: float,
) -> None:
    num = least_values(chance)

    def clear(count: int) -> list[float]:
        return [100.0 * (place >= count // 2) + place % 3 + place / 100 for place in range(count)]

    assert change_points(clear(num - 1), chance) == ()
    assert [each.place for each in change_points(clear(num + num % 2), chance)]
