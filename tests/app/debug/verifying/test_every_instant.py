"""At every instant of a device the state is what its cores, queues and threads were just then."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.engine.scenarios import Options
from tests.app.debug.verifying.every_instant import FEW, differences, of_devices
from tests.replays import Run
from tests.tiers import sampled, slow

STARVING = {**FEW, "workload": "mix-starvation"}
SHORT_OF_SLOTS = {**FEW, "workload": "moe-layer", "task_slots": "40", "threads": "5"}
RUNS = {str(run): run for run in of_devices() if run.fault} | {
    "put back": Run("mix-admission", "barrier", Options(settings=STARVING)),
    "short of slots": Run("mix-admission", "aic-free", Options(settings=SHORT_OF_SLOTS)),
    "starts together": Run(
        "mix-admission", "after", Options(settings={**FEW, "workload": "sync-mix-spill"})
    ),
}


@slow
@pytest.mark.parametrize(
    "name",
    sampled(
        [
            "put back",
            "short of slots",
            "starts together",
            "mix-admission after with lost-ring-advance",
            "mix-admission after with sync-start-in-part",
            "mix-admission after with late-part-hangs",
            "mix-admission after with deferred-completion-lost",
        ],
        ["put back", "starts together"],
    ),
)
def test_at_every_instant_a_device_is_shown_as_it_was(name: str, tmp_path: Path) -> None:
    assert differences(RUNS[name], tmp_path) == []
