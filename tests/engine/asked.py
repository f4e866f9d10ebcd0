"""Options of a scenario, said in short."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from stepscope.engine.runs.scenario import Options
from stepscope.engine.serving.observing import Observer
from stepscope.engine.workloads.graphs import Graphs
from stepscope.engine.workloads.workload import Workload

SMALL: Mapping[str, Mapping[str, str]] = {
    "mix-admission": {"groups": "2", "requests": "2", "steps": "1"},
    "mixed-batches": {"requests": "4", "prompt_len": "64", "max_tokens": "8"},
    "slot-recycling": {},
    "ep-multiplexing": {"requests": "2", "max_tokens": "3"},
    "fcfs-preemption": {"requests": "6"},
    "waiting-queue": {},
}
"""Settings with which each scenario takes no time."""


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
