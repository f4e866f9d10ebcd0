"""`stepscope tui`: the terminal front."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepscope.app.cli.given import holds_slo
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.tui import pages
from stepscope.ingest.errors import ConfigError


@click.command(
    help=f"""Look at TRACE in the terminal: {", ".join(tab.name for tab in pages.PAGES)}.

    Keys: w s zoom, a d pan, n N next and previous finding, [ ] step, / search, ? help, q quit.
    """
)
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "--page", type=click.Choice([tab.name for tab in pages.PAGES]), default=pages.PAGES[0].name,
    show_default=True, help="The page to open first.",
)  # fmt: skip
@holds_slo
@opens_traces
def tui(trace: Path, page: str, slo: str | None, open_trace: OpenTrace) -> None:
    """Open the terminal front; its help is made from the pages that there are."""
    look_in_terminal(trace, page, slo, open_trace)


def look_in_terminal(trace: Path, page: str | None, slo: str | None, open_trace: OpenTrace) -> None:
    """Open a trace, take the screen, and give it back; ConfigError where there is no terminal."""
    if not sys.stdin.isatty():
        raise ConfigError("tui needs a terminal", todo="use `stepscope check` or `stepscope web`")
    from stepscope.analyzers.check.registry import usable_rules
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app import recent
    from stepscope.app.tui.app import StepscopeApp
    from stepscope.app.tui.hang_up import end_with_terminal

    asked = slo_of(slo) if slo is not None else None
    usable_rules()  # what cannot be used is told before the screen is taken
    with progress() as report:
        opened = open_trace(trace, report)
    recent.opened(trace)
    end_with_terminal(sys.stdin.fileno())
    StepscopeApp(opened, None, page or pages.PAGES[0].name, asked).run()
