"""How much longer a step is with our functions, as pairs of steps with and without them say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import expm1, log
from random import Random
from statistics import median

NUM_DRAWN = 400
"""Resamplings."""
CUT = 0.2
"""Of the pairs, at each end: steps during which the processor went elsewhere."""
Phase = Sequence[tuple[float, float]]
"""Seconds of each step, without our functions and with them."""


@dataclass(frozen=True)
class More:
    """How much longer steps are with our functions, as a share of a `step` of so many seconds.

    What 95% of resamplings of the phases give, two and two, lies between `low` and `high`.
    """

    share: float
    low: float
    high: float
    step: float
    num_pairs: int

    @classmethod
    def of(cls, phases: Sequence[Phase]) -> More:
        """Compare the steps of an even number of phases."""
        twos = [[*first, *second] for first, second in zip(phases[::2], phases[1::2], strict=True)]
        num_places = len(phases[0])
        drawn = Random(0)
        shares = sorted(
            _share(drawn.choices(twos, k=len(twos)), num_places) for _ in range(NUM_DRAWN)
        )
        return cls(
            _share(twos, num_places), shares[NUM_DRAWN // 40], shares[-NUM_DRAWN // 40 - 1],
            sum(_usual(twos, num_places)) / num_places, sum(map(len, twos)),
        )  # fmt: skip

    def __str__(self) -> str:
        return (
            f"with against without, {self.share:+.2%} ({self.low:+.2%} to {self.high:+.2%}, "
            f"{self.num_pairs:,} pairs of steps) of a step of {self.step * 1e6:,.0f} µs"
        )


def _share(phases: Sequence[Phase], num_places: int) -> float:
    """How much longer steps are: of each place the mean without the ends, as it is long.

    It is one of logarithms, as who is a tenth faster than the other is so in both directions.
    """
    usual = _usual(phases, num_places)
    more = [
        _middle([log(ours / theirs) for phase in phases for theirs, ours in phase[at::num_places]])
        for at in range(num_places)
    ]
    return sum(expm1(each) * long for each, long in zip(more, usual, strict=True)) / sum(usual)


def _usual(phases: Sequence[Phase], num_places: int) -> list[float]:
    return [
        median(theirs for phase in phases for theirs, _ in phase[at::num_places])
        for at in range(num_places)
    ]


def _middle(values: Sequence[float]) -> float:
    cut = int(len(values) * CUT)
    inner = sorted(values)[cut : len(values) - cut]
    return sum(inner) / len(inner)
