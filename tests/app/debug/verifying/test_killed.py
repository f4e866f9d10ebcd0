"""What SIGKILL leaves of a recording: every step that was formed is what the engine held."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.app.debug.exact import all_runs
from tests.app.debug.verifying.killing import Recordings, killed
from tests.replays import SMALL
from tests.tiers import sampled

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked here")
RUNS = {
    str(run): run
    for run in all_runs(SMALL)
    if run.options.executor in ("simulated", "ragged") and run.fault is None
}


@pytest.fixture(scope="module")
def recordings() -> Iterator[Recordings]:
    with Recordings.started() as process:
        yield process


@pytest.mark.parametrize(
    "name",
    sampled(
        ["slot-recycling after", "mixed-batches before", "ep-multiplexing after"],
        ["slot-recycling after"],
    ),
)
def test_a_recording_that_is_killed_shows_each_formed_step_as_the_engine_held_it_and_no_torn_one(
    name: str, recordings: Recordings, tmp_path: Path
) -> None:
    found = killed(RUNS[name], recordings, tmp_path, Random(name), times=1)

    assert found.differences == []
    assert found.torn > 1
