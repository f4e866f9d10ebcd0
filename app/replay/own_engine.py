"""A run of the reference engine again: unchanged it has to be the same, changed it says what if."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path

from stepscope.engine.runs.rerun import Changes, changed, options_of, run_to_its_end, scenario_of
from stepscope.engine.runs.scenario import PRODUCER, RunResult
from stepscope.engine.scenarios import SCENARIOS
from stepscope.ingest.errors import ConfigError
from stepscope.ingest.trace import Trace

OURS = "stepscope"
"""What `--engine` calls the reference engine."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """A recorded run and the same run again, `changes` apart.

    `different` are the names of files that are not the same, byte for byte, or that one of the
    two traces lacks; None where the clock is real, or something was changed: then only decisions
    can be compared.
    """

    recorded: Trace
    replayed: Trace
    changes: Changes
    result: RunResult
    different: tuple[str, ...] | None


def is_ours(trace: Trace) -> bool:
    """Tell whether the reference engine recorded a trace."""
    return trace.manifest.producer == PRODUCER


def rerun(trace: Trace, changes: Changes, out: Path) -> Rerun:
    """Run what a trace of the reference engine holds again, and record it to `out`.

    Raises ConfigError where the trace does not say what it was recorded with, or for changes that
    its scenario does not know.
    """
    variant, options = changed(*options_of(trace), changes)
    result = run_to_its_end(scenario_of(trace, SCENARIOS), variant, out, options)
    replayed = Trace.open(out)
    is_computed = trace.manifest.clock.kind == "virtual" and not changes
    different = tuple(_different(trace.path, out)) if is_computed and trace.path else None
    return Rerun(trace, replayed, changes, result, different)


def rerun_lines(found: Rerun) -> Iterator[str]:
    """What was run again, with which changes, and whether its bytes are the same."""
    manifest = found.recorded.manifest
    yield f"recorded  {found.recorded.name}: {manifest.scenario} {manifest.variant}"
    yield f"replayed  {', '.join(_said(found.changes)) or 'unchanged'}"
    if found.result.stopped:
        yield f"  it was given up: {found.result.stopped}"
    if found.different is None:
        if not found.changes:
            yield "its clock is real, so its decisions are compared and not its bytes"
    elif found.different:
        yield f"not the same bytes: {', '.join(found.different)}"
    else:
        yield "the same bytes in every file"


def _said(changes: Changes) -> Iterator[str]:
    if changes.variant:
        yield f"with variant {changes.variant}"
    for key, text in changes.settings.items():
        yield f"with {key}={text}"
    for name in changes.without:
        yield f"without fault {name}"
    if changes.cost:
        yield "with other costs of steps"


def _different(recorded: Path, replayed: Path) -> Iterator[str]:
    """Names of files, below both folders, that differ."""
    if not recorded.is_dir():
        raise ConfigError("is no trace of its own, whose bytes could be compared",
                          where=str(recorded), todo="leave --check out")  # fmt: skip
    ours, theirs = _files(recorded), _files(replayed)
    for name in sorted(ours | theirs):
        if name not in ours & theirs or not cmp(recorded / name, replayed / name, shallow=False):
            yield name


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
