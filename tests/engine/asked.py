"""Options of a scenario, said in short."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stepscope.engine.runs.scenario import Options
from stepscope.engine.serving.engine import Observer
from stepscope.engine.workloads.graphs import Graphs
from stepscope.engine.workloads.workload import Workload


def asked(
    settings: Mapping[str, str] | None = None,
    *,
    seed: int = 0,
    observer: Observer | None = None,
    workload: Workload | Graphs | Path | None = None,
) -> Options:
    """Options; the setting `fault` is a fault."""
    values = dict(settings or {})
    faults = frozenset({values.pop("fault", "none")}) - {"none"}
    return Options(seed, values, faults, workload=workload, observer=observer)
