"""`stepscope tui`: the terminal front."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.ingest.errors import ConfigError


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@opens_traces
def tui(trace: Path, open_trace: OpenTrace) -> None:
    """Look at TRACE in the terminal: overview, timeline, findings, steps.

    Keys: w s zoom, a d pan, n N next and previous finding, [ ] step, / search, ? help, q quit.
    """
    if not sys.stdin.isatty():
        raise ConfigError("tui needs a terminal", todo="use `stepscope check` or `stepscope web`")
    from stepscope.app.tui.app import StepscopeApp

    with progress() as report:
        opened = open_trace(trace, report)
    StepscopeApp(opened, None).run()
