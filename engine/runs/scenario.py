"""What a scenario is: a workload, an engine, and variants of it to compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from importlib.metadata import version
from math import isfinite, nan
from pathlib import Path
from typing import Any, Protocol

from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.faults import fault, faults_of
from stepscope.engine.serving.observing import Observer
from stepscope.engine.workloads.files import in_manifest, keep_beside
from stepscope.engine.workloads.graphs import Graphs
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.manifest import ClockInfo
from stepscope.ingest.recorder import Recorder

Metric = float | int | str
PRODUCER = "stepscope-engine"
GIVEN = "given"
"""Where a manifest says what `record` was given."""
VIRTUAL = ClockInfo("virtual")


@dataclass(frozen=True, slots=True)
class RunResult:
    """What one run of a scenario came to; `path` is its trace, None when not recorded.

    What never was has no metric: it is unknown, and not 0. `stopped` says why the run was given up,
    and is None where it came to its end.
    """

    scenario: str
    variant: str
    path: Path | None
    metrics: dict[str, Metric]
    stopped: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How a scenario is to be run, where its own defaults will not do.

    `workload`, or the file that holds it, replaces the scenario's own: requests, or task graphs
    where the scenario dispatches these; `executor` None is the
    one that a fault needs, or the scenario's first; with `profile` the executor's profiler writes a
    file into the trace; `cost` replaces what steps cost where that is a model.
    """

    seed: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    faults: frozenset[str] = frozenset()
    executor: str | None = None
    profile: bool = False
    workload: Workload | Graphs | Path | None = None
    observer: Observer | None = None
    cost: CostModel | None = None


DEFAULTS = Options()


MOST = 2**24
"""What any setting may be: beyond it no run ends, or its memory does not."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A number or name that `--set key=value` changes; its default gives its type."""

    default: int | float | str | bool
    help: str
    choices: tuple[str, ...] = ()
    at_least: float | None = None
    at_most: float = MOST

    def parse(self, key: str, text: str) -> int | float | str | bool:
        """Return `text` as the default's type; ConfigError when it is not one, or out of range."""
        value = self._convert(key, text)
        if self.choices and value not in self.choices:
            raise ConfigError(f"{key}={text}: choose {_either(self.choices)}")
        if self.at_least is not None and isinstance(value, (int, float)) and value < self.at_least:
            raise ConfigError(f"{key}={text}: it must be at least {self.at_least:g}")
        if isinstance(value, (int, float)) and value > self.at_most:
            raise ConfigError(f"{key}={text}: it must be at most {self.at_most:,}")
        return value

    def _convert(self, key: str, text: str) -> int | float | str | bool:
        if isinstance(self.default, bool):
            if text.lower() not in _BOOLS:
                raise ConfigError(f"{key}={text}: choose true or false")
            return _BOOLS[text.lower()]
        kind = type(self.default)
        try:
            value = kind(text)
        except ValueError:
            value = nan
        if isinstance(value, float) and not isfinite(value):
            raise ConfigError(f"{key}={text}: {_KINDS[kind]} is needed")
        return value


_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_KINDS: dict[type, str] = {int: "a whole number", float: "a number", str: "text"}


def parse_settings(settings: Mapping[str, Setting], given: Mapping[str, str]) -> dict[str, Any]:
    """Return every setting's value, as given or by default; ConfigError for an unknown key."""
    for key in given:
        if key not in settings:
            raise unknown("setting", key, settings)
    return {
        key: setting.parse(key, given[key]) if key in given else setting.default
        for key, setting in settings.items()
    }


def settled(scenario: Scenario, variant: str, options: Options) -> dict[str, Any]:
    """Return the value of every setting of `scenario`; what a fault needs is its default then.

    ConfigError for a variant, executor, fault or setting that the scenario does not know.
    """
    if variant not in scenario.variants:
        raise unknown("variant", variant, scenario.variants)
    if options.executor not in (None, *scenario.executors):
        raise unknown("executor", str(options.executor), scenario.executors)
    executor = executor_kind(executor_of(scenario, options))
    if options.profile and not executor.has_profiler:
        raise ConfigError("there is nothing to profile", todo="add --executor torch")
    if options.cost and not executor.is_priced:
        raise ConfigError(f"{scenario.name} takes no costs: {executor.name} has its own")
    needed: dict[str, str] = {}
    for name in sorted(options.faults):
        if fault(name).scenario != scenario.name:
            known = ", ".join(each.name for each in faults_of(scenario.name)) or "none"
            raise ConfigError(f"{scenario.name} has no fault {name!r}, it has: {known}")
        needed |= fault(name).settings
    return parse_settings(scenario.settings, {**needed, **options.settings})


def executor_of(scenario: Scenario, options: Options) -> str:
    """Return the executor that is asked for, or that a fault needs, or the scenario's first."""
    needed = (fault(name).executor for name in sorted(options.faults))
    return options.executor or next(filter(None, needed), scenario.executors[0])


def as_given(values: Mapping[str, Any], options: Options) -> dict[str, Any]:
    """What a manifest says of the settings: as they are, and as they were given, to run it again.

    `cost` is None where the scenario's own costs are used. What was served instead of the
    scenario's own workload is in the trace, as far as it is requests.
    """
    given = {
        "seed": options.seed,
        "settings": dict(options.settings),
        "faults": sorted(options.faults),
        "executor": options.executor,
        "cost": asdict(options.cost) if options.cost else None,
        "workload": options.workload is not None,
    }
    return {"settings": values, "seed": options.seed, GIVEN: given}


def unknown(what: str, name: str, known: Iterable[str]) -> ConfigError:
    """Return the error for a name that is none of the known ones, with the nearest of them."""
    names = list(known)
    near = get_close_matches(name, names, n=3) or names
    return ConfigError(f"no {what} is called {name!r}", todo=f"try {_either(near)}")


def _either(names: Iterable[str]) -> str:
    return ", ".join(names)


@contextmanager
def recorder_for(
    out: Path | None,
    scenario: str,
    variant: str,
    config: Mapping[str, Any],
    workload: Mapping[str, Any] | None,
    clock: ClockInfo = VIRTUAL,
    rank: int = 0,
) -> Iterator[Recorder | None]:
    """Give a recorder that writes to `out`, or None where nothing is asked."""
    if out is None:
        yield None
        return
    with Recorder(
        out, producer=PRODUCER, producer_version=version("stepscope"), clock=clock,
        config=dict(config), workload=in_manifest(workload) if workload else None,
        scenario=scenario, variant=variant, rank=rank,
    ) as recorder:  # fmt: skip
        if workload:
            keep_beside(workload, out)
        yield recorder


class Scenario(Protocol):
    """A workload with known truth, run under each of its variants.

    `columns` are metrics of the table that it prints; one that is a rule's code is the number of
    its findings, which whoever runs the rules fills in.
    """

    @property
    def name(self) -> str:
        """What it is called on the command line."""
        ...

    @property
    def summary(self) -> str:
        """One line that says what it is about."""
        ...

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of its variants: `before`, `after`, and then the alternatives."""
        ...

    @property
    def settings(self) -> Mapping[str, Setting]:
        """What `--set` may change."""
        ...

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the metrics that its table shows, in order."""
        ...

    @property
    def executors(self) -> tuple[str, ...]:
        """Names of what it can run on; the first is the default."""
        ...

    def record(self, variant: str, out: Path | None, options: Options = DEFAULTS) -> RunResult:
        """Run `variant` and write its trace to `out`; ConfigError for what it does not know.

        Without `out` nothing is written, and the metrics are all there is.
        """
        ...
