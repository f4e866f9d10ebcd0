"""The two tiers of the suite: `make test` leaves out what is marked slow, `make test-all` runs it.

A test is slow when it repeats on many inputs what a quick one states on one or two.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")

QUICK = "STEPSCOPE_QUICK_TESTS"
"""The environment variable that is set where the slow tests are left out."""

slow = pytest.mark.slow


def sampled(cases: Iterable[Case], quick: Collection[Case]) -> list[object]:
    """Return the parameters of a test, those outside `quick` marked slow.

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


def failures(check: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> dict[str, str]:
    """Return the cases of which a check fails, each with what failed, so that all are named.

    One test that loops over many small cases costs what one of them does as a test of its own.
    """
    found = {}
    for case in cases:
        try:
            check(*case)
        except (Exception, pytest.fail.Exception) as failed:
            found[repr(case)[:200]] = f"{type(failed).__name__}: {failed}"
    return found
