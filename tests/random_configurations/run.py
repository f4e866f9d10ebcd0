"""Run configurations: refused in a line, clean, or something is found, which a count confirms."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stepscope.analyzers.finding import Finding, Severity
from stepscope.analyzers.run import check
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace
from tests.random_configurations import count_cores, count_requests
from tests.random_configurations.draw import Configuration
from tests.random_configurations.tables import Tables

COUNTS: Mapping[str, Callable[[Tables, Finding], bool]] = {
    **count_cores.COUNTS, **count_requests.COUNTS,
}  # fmt: skip
MAX_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and whether a count of its own says the same."""

    finding: Finding
    is_confirmed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a configuration came to: the line that refused it, or what was found, if anything."""

    configuration: Configuration
    refusal: str | None = None
    judged: tuple[Judged, ...] = ()

    @property
    def unconfirmed(self) -> list[str]:
        """Findings that no count confirms, with the command that repeats them."""
        return [
            f"{each.finding.code}: {each.finding.message}\n    {self.configuration.command}"
            for each in self.judged
            if not each.is_confirmed
        ]


def run(configuration: Configuration) -> Outcome:
    """Record, check, and count again; a crash or a hang is raised."""
    with tempfile.TemporaryDirectory() as folder, limited(configuration):
        out = Path(folder) / "drawn.trace"
        try:
            recorded(configuration, out)
        except ConfigError as error:
            return Outcome(configuration, refusal=str(error))
        trace = Trace.open(out)
        tables = Tables(trace)
        loud = [each for each in check(trace).findings if each.severity is not Severity.INFO]
        return Outcome(configuration, judged=tuple(Judged(f, confirmed(tables, f)) for f in loud))


def recorded(configuration: Configuration, out: Path, *, with_fault: bool = True) -> None:
    """Record a configuration; ConfigError where the engine refuses it."""
    fault = configuration.fault if with_fault else None
    options = Options(
        seed=configuration.seed,
        settings=configuration.settings,
        faults=frozenset([fault] if fault else []),
    )
    scenario(configuration.scenario).record(configuration.variant, out, options)


def without_fault(configuration: Configuration) -> Configuration:
    """The same, and sound."""
    return replace(configuration, fault=None)


def confirmed(tables: Tables, found: Finding) -> bool:
    """Whether there is a count for what the rule says, and it says the same."""
    count = COUNTS.get(found.code)
    return count is not None and count(tables, found)


@contextmanager
def limited(configuration: Configuration, seconds: int = MAX_SECONDS) -> Iterator[None]:
    """Raise TimeoutError, naming the configuration, where it takes longer than that."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"over {seconds} s: {configuration.command}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
