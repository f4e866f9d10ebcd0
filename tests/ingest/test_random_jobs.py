"""Random jobs of two ranks: they are joined right, or not at all. More: `make random`."""

from __future__ import annotations

import pytest

from tests.ingest.random_jobs import draw, told

JOINED_WRONGLY = (25, 40, 57, 60, 64, 67, 72, 83, 87, 98, 117, 142)
"""Those that were, when windows of one step were taken for others that do the same."""


@pytest.mark.parametrize("number", [*range(24), *JOINED_WRONGLY])
def test_ranks_of_a_random_job_are_joined_right_or_not_at_all(number: int) -> None:
    assert told(draw(number))


def test_some_random_jobs_are_joined() -> None:
    assert {told(draw(number)) for number in range(24)} >= {"sequence numbers", "not joined"}
