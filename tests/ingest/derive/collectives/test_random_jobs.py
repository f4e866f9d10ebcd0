"""Random jobs of two ranks: they are joined right, or not at all. More: `make random`."""

from __future__ import annotations

import pytest

from tests.ingest.derive.collectives.random_jobs import draw, told
from tests.tiers import sampled, slow

JOINED_WRONGLY = (20_600, 20_759)
"""Those that were, as what is in no step was taken to be in any, or pairs went on behind a gap."""


@slow
@pytest.mark.parametrize("number", sampled([*range(24), *JOINED_WRONGLY], [0, 1, *JOINED_WRONGLY]))
def test_ranks_of_a_random_job_are_joined_right_or_not_at_all(number: int) -> None:
    assert told(draw(number))


def test_some_random_jobs_are_joined() -> None:
    assert {told(draw(number)) for number in range(24)} >= {"sequence numbers", "not joined"}
