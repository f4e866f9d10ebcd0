"""Whether an unchanged run of the reference engine is the same again: `make replays`.

Every variant of every scenario, and every fault, is recorded and run again from what is in its
trace: on a virtual clock each byte has to be the same, on a real one each decision.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stepscope.app.replay.compared import compared
from stepscope.app.replay.own_engine import rerun
from stepscope.engine.executors.kinds import executor_kind
from stepscope.engine.faults import FAULTS, Fault
from stepscope.engine.runs.rerun import Changes, run_to_its_end
from stepscope.engine.runs.scenario import Options
from stepscope.engine.scenarios import SCENARIOS, scenario
from stepscope.ingest.trace import Trace

SMALL: Mapping[str, Mapping[str, str]] = {
    "mixed-batches": {"requests": "6", "max_tokens": "12"},
    "mix-admission": {"requests": "2"},
    "ep-multiplexing": {"max_tokens": "6"},
}
"""Settings with which a scenario takes a fraction of a second."""


@dataclass(frozen=True)
class Run:
    """A run that is recorded, to be run again."""

    scenario: str
    variant: str
    options: Options = field(default_factory=Options)
    fault: Fault | None = None

    def __str__(self) -> str:
        fault = f" with {self.fault.name}" if self.fault else ""
        return f"{self.scenario} {self.variant}{fault}"

    @property
    def needs_torch(self) -> bool:
        """Tell whether it can only be run where torch is installed."""
        name = self.fault.executor if self.fault else None
        return bool(name) and executor_kind(str(name)).needs_torch


def runs(settings: Mapping[str, Mapping[str, str]]) -> Iterator[Run]:
    """Every variant, and every fault on the variant that shows it, with these settings."""
    for each in SCENARIOS:
        given = Options(settings=settings.get(each.name, {}))
        for variant in each.variants:
            yield Run(each.name, variant, given)
    for fault in FAULTS:
        name = fault.scenario
        given = Options(settings=settings.get(name, {}), faults=frozenset({fault.name}))
        yield Run(name, fault.variant, given, fault)


def differences(run: Run, folder: Path) -> list[str]:
    """Record a run and run it again; returns what differs, and nothing where it is the same."""
    first = folder / "recorded.trace"
    run_to_its_end(scenario(run.scenario), run.variant, first, run.options)
    return differences_from(Trace.open(first), folder)


def differences_from(recorded: Trace, folder: Path) -> list[str]:
    """Run a recorded run again; returns what differs, and nothing where it is the same."""
    found = rerun(recorded, Changes(), folder / "again.trace")
    if found.different is not None:
        return list(found.different)
    both = compared((found.recorded, found.replayed), rules=False, report=_silent)
    return [] if both.is_same else both.lines()


def _silent(*_: object) -> None:
    pass


def main() -> int:
    """Print every run; returns 1 where one was not the same again."""
    num_other = num = 0
    for run in runs({}):
        with tempfile.TemporaryDirectory() as folder:
            found = differences(run, Path(folder))
        num, num_other = num + 1, num_other + bool(found)
        said = f"DIFFERENT: {', '.join(found)}" if found else "same"
        sys.stdout.write(f"{said}  {run}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{num} runs, {num_other} of them not the same again\n")
    return bool(num_other)


if __name__ == "__main__":
    sys.exit(main())
