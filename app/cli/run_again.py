"""Running a run of the reference engine again, as `stepscope replay` does: once, or many times."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError, MissingExtra, WriteError

if TYPE_CHECKING:
    from stepscope.app.replay.sweep import Run
    from stepscope.engine.runs.rerun import Changes
    from stepscope.ingest.progress import Progress
    from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is to be varied, and the page that is asked for."""

    texts: tuple[str, ...]
    page: Path | None
    force: bool

    def refuse_where_no_page_can_be(self) -> None:
        """Before anything is run, which takes long."""
        if self.page and self.page.exists() and not self.force:
            raise ConfigError("it exists", where=str(self.page), todo="add --force to overwrite it")
        if self.page and not self.page.absolute().parent.is_dir():
            raise WriteError("there is no such folder", where=str(self.page.parent))
        if find_spec("plotly") is None:
            raise MissingExtra("charts need Plotly", todo="pip install 'stepscope[web]'")


def refuse_changes(changes: object) -> None:
    """Refuse --check for a run with changes; raises ConfigError."""
    if changes:
        raise ConfigError("--check compares an unchanged run with the recorded one",
                          todo="leave out --check, or the changes")  # fmt: skip


def run_again(
    recorded: Trace, changes: Changes, into: Path, report: Progress, form: str, *,
    demands_same: bool,
) -> bool:  # fmt: skip
    """Run a scenario again; returns whether all is the same that can be compared."""
    from stepscope.app.replay.compared import compared
    from stepscope.app.replay.own_engine import rerun, rerun_lines

    if demands_same:
        refuse_changes(changes)
    report("running again", 0, None)
    found = rerun(recorded, changes, into)
    both = compared((recorded, found.replayed), rules=bool(changes), report=report)
    if form == "json":
        told = {"same_bytes": None if found.different is None else not found.different,
                "different_files": found.different, "is_same": both.is_same}  # fmt: skip
        click.echo(json.dumps({**told, "diff": both.as_dict()}, indent=2, default=str))
    else:
        lines = both.lines() if changes or not both.is_same else [both.found.verdict]
        for line in (*rerun_lines(found), "", *lines):
            click.echo(plain(line))
    return both.is_same and not (demands_same and found.different)


def resimulate(recorded: Trace, changes: Changes, into: Path, report: Progress, form: str) -> bool:
    """Run what another engine recorded on the reference engine, and say how they differ."""
    from stepscope.app.replay.compared import compared
    from stepscope.app.replay.resimulated import resimulated, resimulated_lines

    report("simulating", 0, None)
    found = resimulated(recorded, changes, into)
    both = compared((recorded, found.replayed), rules=found.is_scheduled, report=report)
    if form == "json":
        how = "re-simulated" if found.is_scheduled else "batches priced"
        told = {"how": how, "settings": dict(found.settings), "assumed": found.assumed,
                "costs": None if found.fitted is None else asdict(found.fitted),
                "is_same": both.is_same}  # fmt: skip
        click.echo(json.dumps({**told, "diff": both.as_dict()}, indent=2, default=str))
    else:
        for line in (*resimulated_lines(found), "", *both.lines()):
            click.echo(plain(line))
    return both.is_same


def _how(recorded: Trace) -> Run:
    """How a trace is run: again where the reference engine recorded it, else re-simulated."""
    from stepscope.app.replay.own_engine import is_ours, rerun
    from stepscope.app.replay.resimulated import resimulated

    def again(trace: Trace, changes: Changes, out: Path) -> tuple[Trace, str | None]:
        found = rerun(trace, changes, out)
        return found.replayed, found.result.stopped

    def anew(trace: Trace, changes: Changes, out: Path) -> tuple[Trace, str | None]:
        found = resimulated(trace, changes, out)
        return found.replayed, found.stopped

    return again if is_ours(recorded) else anew


def _of_run(recorded: Trace, changes: Changes) -> str:
    manifest = recorded.manifest
    if manifest.scenario:
        return f"{manifest.scenario} {changes.variant or manifest.variant}"
    return f"{manifest.producer}, re-simulated by the reference engine"


def run_sweep(
    recorded: Trace, changes: Changes, asked: Sweep, into: Path, report: Progress, form: str
) -> None:
    """Run with each choice of settings, and say what each came to."""
    from stepscope.app.replay.sweep import axis_of, choices_of, sweep
    from stepscope.app.replay.sweep_table import sweep_lines

    if not asked.texts:
        raise ConfigError("--page shows what --sweep ran", todo="add --sweep NAME=A..B")
    axes = [axis_of(text) for text in asked.texts]
    if asked.page:
        asked.refuse_where_no_page_can_be()
    points = list(sweep(recorded, _how(recorded), changes, choices_of(axes), into, report))
    if all(each.refused for each in points[1:]):
        raise ConfigError(str(points[1].refused))
    if form == "json":
        click.echo(json.dumps([asdict(each) for each in points], indent=2, default=str))
    else:
        for line in sweep_lines(points, axes):
            click.echo(line)
    if asked.page:
        from stepscope.app.replay.sweep_page import write_page

        title = f"{recorded.name}: {_of_run(recorded, changes)}"
        write_page(points, axes, title, asked.page)
