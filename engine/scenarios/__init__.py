"""One scenario per file; the file's docstring is the scenario's page."""

from __future__ import annotations

from stepscope.engine.runs.scenario import Options, RunResult, Scenario, Setting, unknown
from stepscope.engine.scenarios.ep_multiplexing import EpMultiplexing
from stepscope.engine.scenarios.fcfs_preemption import FcfsPreemption
from stepscope.engine.scenarios.mix_admission import MixAdmission
from stepscope.engine.scenarios.mixed_batches import MixedBatches
from stepscope.engine.scenarios.slot_recycling import SlotRecycling
from stepscope.engine.scenarios.waiting_queue import WaitingQueue

SCENARIOS: tuple[Scenario, ...] = (
    MixAdmission(),
    FcfsPreemption(),
    SlotRecycling(),
    EpMultiplexing(),
    MixedBatches(),
    WaitingQueue(),
)


def scenario(name: str) -> Scenario:
    """Return the scenario of that name; ConfigError with near matches when there is none."""
    for each in SCENARIOS:
        if each.name == name:
            return each
    raise unknown("scenario", name, (each.name for each in SCENARIOS))


__all__ = ["SCENARIOS", "Options", "RunResult", "Scenario", "Setting", "scenario"]
