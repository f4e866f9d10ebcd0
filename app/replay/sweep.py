"""One run of the reference engine with each of several settings, side by side."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.diff.outcomes import totals
from stepscope.analyzers.findings.finding import Severity
from stepscope.engine.runs.rerun import Changes
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.progress import Progress
from stepscope.ingest.trace import Trace

MOST_RUNS = 200
RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?::(\d+))?")
FORMS = "NAME=FIRST..LAST, NAME=FIRST..LAST:STEP or NAME=VALUE,VALUE,..."
Axis = tuple[str, tuple[str, ...]]
Run = Callable[[Trace, Changes, Path], tuple[Trace, str | None]]
"""Runs a trace with changes and records it; returns what came of it, and why it was given up."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run with one choice of settings; the recorded run where there is no choice.

    `totals` are those of `stepscope diff`, `counts` the findings of each rule that could judge, and
    `loud` how many are errors and warnings. Where the engine refused the settings, `refused` says
    why and there is nothing else; `stopped` is why a run was given up.
    """

    settings: Mapping[str, str]
    totals: Mapping[str, Any]
    counts: Mapping[str, int]
    loud: Mapping[str, int]
    stopped: str | None = None
    refused: str | None = None


def axis_of(text: str) -> Axis:
    """Return the setting and its values that `--sweep` was given; ConfigError for another form."""
    name, _, told = text.partition("=")
    if not name or not told:
        raise ConfigError(f"--sweep {text}: give it as {FORMS}")
    if not (found := RANGE.fullmatch(told)):
        return name, tuple(dict.fromkeys(told.split(",")))
    first, last, by = int(found[1]), int(found[2]), int(found[3] or 1)
    if not by or last < first:
        raise ConfigError(f"--sweep {text}: from {first} to {last} by {by} there is nothing",
                          todo=f"give it as {FORMS}")  # fmt: skip
    if (number := (last - first) // by + 1) > MOST_RUNS:
        raise _too_many(number, f"give a step, as in {name}={first}..{last}:{number // 10 * by}")
    return name, tuple(map(str, range(first, last + 1, by)))


def choices_of(axes: Sequence[Axis]) -> list[dict[str, str]]:
    """Return every combination of values; ConfigError for a setting twice, or too many of them."""
    names = [name for name, _ in axes]
    if len(set(names)) < len(names):
        raise ConfigError(f"--sweep {names[-1]}=... is given more than once")
    if (number := prod(len(values) for _, values in axes)) > MOST_RUNS:
        raise _too_many(number, "give fewer values")
    return [dict(zip(names, each, strict=True)) for each in product(*(each for _, each in axes))]


def sweep(
    trace: Trace, run: Run, changes: Changes, choices: Sequence[Mapping[str, str]],
    folder: Path, report: Progress,
) -> Iterator[Point]:  # fmt: skip
    """Yield the recorded run, and then one run for each choice of settings, as it ends.

    Each is recorded to `folder`, called after its settings.
    """
    yield _point({}, trace)
    for number, choice in enumerate(choices):
        report(f"running with {said(choice)}", number, len(choices))
        changed = replace(changes, settings={**changes.settings, **choice})
        try:
            replayed, stopped = run(trace, changed, folder / _file_of(choice))
        except ConfigError as refused:
            yield Point(choice, {}, {}, {}, refused=str(refused))
        else:
            yield _point(choice, replayed, stopped)


def _too_many(number: int, todo: str) -> ConfigError:
    return ConfigError(f"--sweep: {number:,} runs are more than {MOST_RUNS}", todo=todo)


def _point(settings: Mapping[str, str], trace: Trace, stopped: str | None = None) -> Point:
    found = check(trace)
    loud = {
        of.value: sum(each.count for each in found.findings if each.severity is of)
        for of in (Severity.ERROR, Severity.WARNING)
    }
    return Point(settings, totals(trace), found.counts, loud, stopped)


def _file_of(choice: Mapping[str, str]) -> str:
    """A name for its trace, whatever its values are."""
    name = re.sub(r"[^\w.,=+-]", "_", said(choice))
    return f"{name[:200]}.trace"


def said(choice: Mapping[str, str]) -> str:
    """What is set, as `--set` takes it; nothing for the recorded run."""
    return ",".join(f"{name}={value}" for name, value in choice.items())
