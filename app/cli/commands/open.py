"""`stepscope open`: the front that fits where one is."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from stepscope.app.cli.given import two_of
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError


@click.command()
@click.argument("traces", metavar="[TRACE [TRACE]]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--in",
    "front",
    type=click.Choice(("browser", "terminal")),
    help="The front to open.  [default: the browser where there is a display]",
)
@opens_traces
def open(traces: tuple[Path, ...], front: str | None, open_trace: OpenTrace) -> None:  # noqa: A001 - it is called as the command is
    """Look at TRACE in the front that fits: a browser where there is a display, else the terminal.

    Two traces are shown side by side. Without any it lists those that were opened last, the latest
    first; a number of that list stands for its trace.

    Examples:

    \b
      stepscope open run.trace
      stepscope open                                      what was opened last
      stepscope open 1                                    the latest of it, again
      stepscope open 2 1                                  the two latest, side by side
    """
    from stepscope.app.kept.recent import opened

    if not traces:
        _list_recent()
        return
    paths = [_meant(trace) for trace in traces]
    if len(paths) > 1:
        _open_both(two_of(tuple(paths)), front or _fitting(), open_trace)
        return
    (path,) = paths
    if (front or _fitting()) == "terminal":
        from stepscope.app.cli.commands.tui import look_in_terminal

        look_in_terminal(path, None, None, open_trace)
        return
    from stepscope.analyzers.check.registry import usable_rules
    from stepscope.app.live.opener import Opener
    from stepscope.app.web.server import serve

    usable_rules()  # what cannot be used is told before the page is there
    opener = Opener(open_trace)
    with progress() as report:
        begun = opener.begin(path, report)
        opened(path)
    serve(begun.trace, None, browse=True, follower=begun.follower, opener=opener)


def _open_both(paths: tuple[Path, Path], front: str, open_trace: OpenTrace) -> None:
    if front == "terminal":
        from stepscope.app.cli.commands import tui

        tui.look_at_both(paths, None, open_trace)
    else:
        from stepscope.app.cli.commands import web
        from stepscope.app.web import panes

        host, port, tab = "127.0.0.1", 8050, panes.OPEN_FIRST
        web.look_at_both(paths, host, port, tab, open_trace, browse=True)


def _meant(given: Path) -> Path:
    """The trace that was given by its path, or by its number among those opened last."""
    from stepscope.app.kept.recent import recent

    text = str(given)
    if given.exists() or not (text.isascii() and text.isdecimal()):
        return given
    listed = recent()
    if not 1 <= int(text[:9]) <= len(listed):
        todo = f"there are {len(listed)}: stepscope open" if listed else "name a file"
        raise ConfigError(f"{text} is neither a file nor a trace that was opened last", todo=todo)
    return listed[int(text) - 1]


def _list_recent() -> None:
    from stepscope.app.kept.recent import recent

    listed = recent()
    for number, path in enumerate(listed, 1):
        click.echo(f"{number:>2}  {plain(str(path))}")
    if not listed:
        click.echo("nothing was opened before: stepscope open FILE", err=True)


def _fitting() -> str:
    """Where to look at it: a browser where one can be seen and the page is installed."""
    has_display = sys.platform in {"darwin", "win32"} or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    if has_display and find_spec("dash") is not None:
        return "browser"
    if sys.stdin.isatty():
        return "terminal"
    todo = "use `stepscope web` and open its address, or `stepscope report`"
    raise ConfigError("there is neither a display nor a terminal", todo=todo)
