"""Running a recorded scenario again: as its manifest says that it was given, or with changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stepscope.engine.executors import ExecutionFailed
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.runs.outcome import in_short
from stepscope.engine.runs.scenario import GIVEN, PRODUCER, Options, RunResult, Scenario, unknown
from stepscope.engine.workloads.graph_files import graphs_in
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

OF_GIVEN = {
    "seed": int, "settings": dict, "faults": list, "executor": str | None, "cost": dict | None,
    "workload": bool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Changes:
    """What is to be different from the recorded run; nothing, by default.

    `settings` are `key: text` as `record --set` takes them, `without` names faults that are
    switched off, and `cost` is what steps cost instead.
    """

    variant: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    cost: CostModel | None = None

    def __bool__(self) -> bool:
        return self != Changes()


def options_of(trace: Trace) -> tuple[str, Options]:
    """Return the variant and options with which a trace of the reference engine was recorded.

    Raises ConfigError where it does not say so: another engine recorded it, or nobody wrote down
    what was given.
    """
    manifest, given = trace.manifest, trace.manifest.config.get(GIVEN)
    if manifest.producer != PRODUCER or not manifest.scenario or not manifest.variant:
        raise ConfigError("it is no run of the reference engine", where=trace.name,
                          todo="name the engine that recorded it with --engine")  # fmt: skip
    if not isinstance(given, dict) or not _is_whole(given):
        raise ConfigError("its manifest does not say what was given to `record`", where=trace.name,
                          todo="record it again with this version")  # fmt: skip
    options = Options(
        given["seed"], {str(key): str(text) for key, text in given["settings"].items()},
        frozenset(map(str, given["faults"])), given["executor"],
        workload=_workload(trace) if given["workload"] else None, cost=_cost(given, trace),
    )  # fmt: skip
    return manifest.variant, options


def changed(variant: str, options: Options, changes: Changes) -> tuple[str, Options]:
    """Return the variant and options with changes; ConfigError for a fault that was not on."""
    for name in changes.without:
        if name not in options.faults:
            known = ", ".join(sorted(options.faults)) or "none"
            raise ConfigError(f"fault {name!r} was not switched on: those that were are {known}")
    return changes.variant or variant, replace(
        options,
        settings={**options.settings, **changes.settings},
        faults=options.faults - set(changes.without),
        cost=changes.cost or options.cost,
    )


def run_to_its_end(scenario: Scenario, variant: str, out: Path, options: Options) -> RunResult:
    """Record a variant; one whose batch cannot be run is given up there, and its trace ends."""
    try:
        return scenario.record(variant, out, options)
    except ExecutionFailed as failed:
        why = str(failed)
        return RunResult(scenario.name, variant, out, {"outcome": in_short(why)}, why)


def scenario_of(trace: Trace, known: tuple[Scenario, ...]) -> Scenario:
    """Return the scenario of a trace; ConfigError where none of the known ones is called so."""
    name = str(trace.manifest.scenario)
    for each in known:
        if each.name == name:
            return each
    raise unknown("scenario", name, (each.name for each in known))


def _is_whole(given: Mapping[str, Any]) -> bool:
    return all(name in given and isinstance(given[name], kind) for name, kind in OF_GIVEN.items())


def _cost(given: Mapping[str, Any], trace: Trace) -> CostModel | None:
    try:
        return CostModel(**given["cost"]) if given["cost"] else None
    except TypeError as error:
        raise ConfigError(f"what a step costs cannot be read: {error}", where=trace.name) from None


def _workload(trace: Trace) -> Any:
    """What was served instead of the scenario's own: requests, or the graphs that were run."""
    if trace.manifest.workload is None and trace.path is not None:
        return graphs_in(trace.path)
    return Workload.of(trace.path) if trace.path else None
