"""The two tiers of the suite: `make test` leaves out what is marked slow, `make test-all` runs it.

A test is slow when it repeats on many inputs what a quick one states on one or two.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")

QUICK = "STEPSCOPE_QUICK_TESTS"
"""The environment variable that is set where the slow tests are left out."""

slow = pytest.mark.slow


def sampled(cases: Iterable[Case], quick: Collection[Case]) -> list[object]:
    """Return the values of one parameter of a test, those outside `quick` marked slow.

    Raises:
        ValueError: `quick` names a case that does not exist.
    """
    parameters = list(cases)
    if unknown := [case for case in quick if case not in parameters]:
        raise ValueError(f"not among the cases: {unknown}")
    return [case if case in quick else pytest.param(case, marks=slow) for case in parameters]


def examples(number: int) -> int:
    """Return how many examples of a property to draw: a third of `number` in the quick tier."""
    return min(number, max(10, number // 3)) if QUICK in os.environ else number
