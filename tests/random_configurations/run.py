"""Run configurations, twice: refused in a line, or equal, sound, and clean but for what is so."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.engine.scenarios import Options, scenario
from stepscope.ingest.errors import ConfigError, MissingExtra
from stepscope.ingest.schema import BY_NAME
from stepscope.ingest.trace import Trace
from tests.random_configurations import count_cores, count_requests, count_steps
from tests.random_configurations.draw import Configuration
from tests.random_configurations.invariants import broken
from tests.random_configurations.tables import Row, Tables

COUNTS: Mapping[str, Callable[[Tables, Finding], bool]] = {
    **count_cores.COUNTS, **count_requests.COUNTS, **count_steps.COUNTS,
}  # fmt: skip
MAX_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, and whether a count of its own says the same."""

    finding: Finding
    is_confirmed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a configuration came to: the line that refused it, or what was found, if anything.

    `differs` names the tables that were not the same when it ran again, and `broken` says what
    should hold of every run and did not of this one.
    """

    configuration: Configuration
    refusal: str | None = None
    judged: tuple[Judged, ...] = ()
    differs: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()

    @property
    def unconfirmed(self) -> list[str]:
        """Findings that no count confirms."""
        return [
            f"{each.finding.code}: {each.finding.message}"
            for each in self.judged
            if not each.is_confirmed
        ]

    @property
    def wrong(self) -> list[str]:
        """All that should not be, each with the command that repeats it."""
        again = [f"another time its {table} are others" for table in self.differs]
        lines = (*self.unconfirmed, *again, *self.broken)
        return [f"{line}\n    {self.configuration.command}" for line in lines]


def run(configuration: Configuration) -> Outcome:
    """Record twice, compare, check, and count again; a crash or a hang is raised."""
    with tempfile.TemporaryDirectory() as folder, limited(configuration):
        first, second = Path(folder) / "first.trace", Path(folder) / "second.trace"
        try:
            recorded(configuration, first)
        except MissingExtra:
            raise
        except ConfigError as error:
            return Outcome(configuration, refusal=str(error))
        recorded(configuration, second)
        trace, again = Trace.open(first), Trace.open(second)
        tables = Tables(trace)
        loud = [each for each in check(trace).findings if each.severity is not Severity.INFO]
        return Outcome(
            configuration,
            judged=tuple(Judged(each, confirmed(tables, each)) for each in loud),
            differs=tuple(differing(trace, again)),
            broken=tuple(broken(tables)),
        )


def differing(trace: Trace, again: Trace) -> Iterator[str]:
    """Name the tables that are not alike; only times may differ, on the clock of a wall."""
    told, retold = Tables(trace), Tables(again)
    is_timed = trace.manifest.clock.kind == "virtual"
    for name in BY_NAME:
        rows, others = (each[name] if is_timed else _untimed(each[name]) for each in (told, retold))
        if rows != others:
            yield name


def _untimed(rows: list[Row]) -> list[Row]:
    return [
        {name: value for name, value in row.items() if not name.endswith("_ns")} for row in rows
    ]


def recorded(configuration: Configuration, out: Path, *, with_fault: bool = True) -> None:
    """Record a configuration; ConfigError where the engine refuses it."""
    fault = configuration.fault if with_fault else None
    options = Options(
        seed=configuration.seed,
        settings=configuration.settings,
        faults=frozenset([fault] if fault else []),
        executor=configuration.executor,
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
