"""Fixtures for the tests of rules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from stepscope.engine.runs.scenario import Options
from stepscope.engine.scenarios import SCENARIOS
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.trace import Trace
from tests.engine.recorded_once import RecordedOnce
from tests.looped import looped

Record = Callable[..., Trace]
Real = Callable[[str], Trace]
each_scenario = looped("scenario", [each.name for each in SCENARIOS])


@pytest.fixture(scope="session")
def record(recorded_once: RecordedOnce) -> Record:
    """Records a variant of a scenario with a fault, executor and settings, each but once."""
    seen: dict[str, Trace] = {}

    def recorded(
        name: str,
        variant: str = "after",
        fault: str | None = None,
        workload: Workload | None = None,
        executor: str | None = None,
        **settings: str,
    ) -> Trace:
        key = f"{name} {variant} {fault} {workload and workload.as_dict()} {executor} {settings}"
        if key not in seen:
            faults = frozenset({fault} if fault else set())
            options = Options(
                settings=settings, faults=faults, workload=workload, executor=executor
            )
            seen[key] = recorded_once.trace(name, variant, options)
        return seen[key]

    return recorded


@pytest.fixture(scope="session")
def real(shared_data: Path) -> Real:
    """Opens a real file by its path in `../shared/data`, each but once."""
    seen: dict[str, Trace] = {}

    def opened(file: str) -> Trace:
        if file not in seen:
            seen[file] = Trace.open(shared_data / file)
        return seen[file]

    return opened
