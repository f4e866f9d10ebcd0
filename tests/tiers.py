"""The two tiers of the suite: `make test` leaves out what is marked slow, `make test-all` runs it.

A test is slow when it repeats on many inputs what a quick one states on one or two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")

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
