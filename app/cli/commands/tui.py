"""`stepscope tui`: the terminal front."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.following import follows
from stepscope.app.cli.given import holds_slo, two_of
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.tui import pages
from stepscope.ingest.errors import ConfigError

if TYPE_CHECKING:
    from stepscope.app.tui.shell import Shell


@click.command(
    help=f"""Look at TRACE in the terminal: {", ".join(tab.name for tab in pages.PAGES)}.

    Two traces, A and B, are shown side by side under one cursor: D goes to where they diverge
    first, t lays B on A by time, by step or by a request's arrival, X exchanges them.

    A recording in progress is followed: F keeps the newest step in view, H holds, L reads all.

    Keys: w s zoom, a d pan, n N next and previous finding, [ ] step, / search, ? help, q quit.
    """
)
@click.argument("traces", metavar="TRACE [TRACE]", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option(
    "--page", type=click.Choice([tab.name for tab in pages.PAGES]),
    help=f"The page to open first.  [default: {pages.PAGES[0].name}; timeline where it follows]",
)  # fmt: skip
@click.option(
    "--theme", type=click.Choice(["dark", "light"]),
    help="The colours of a dark ground, or of a light one; T goes over to the other."
    "  [default: as the terminal says in COLORFGBG, else dark]",
)  # fmt: skip
@holds_slo
@follows
@opens_traces
def tui(
    traces: tuple[Path, ...], page: str | None, theme: str | None, slo: str | None, follow: bool,
    open_trace: OpenTrace,
) -> None:  # fmt: skip
    """Open the terminal front; its help is made from the pages that there are."""
    if len(traces) > 1:
        look_at_both(two_of(traces), page, open_trace, slo, theme)
        return
    look_in_terminal(traces[0], page, slo, open_trace, follow=follow, theme=theme)


def look_at_both(
    traces: tuple[Path, Path], page: str | None, open_trace: OpenTrace, slo: str | None = None,
    theme: str | None = None,
) -> None:  # fmt: skip
    """Open two traces side by side; ConfigError where there is no terminal."""
    from stepscope.app.tui import paired_pages

    first = page or "timeline"
    _needs_terminal()
    if first not in {tab.name for tab in paired_pages.PAGES}:
        raise ConfigError(f"two traces have no {first} page", todo="open one of them alone")
    from stepscope.analyzers.check.registry import usable_rules
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.kept import recent
    from stepscope.app.tui.both_app import BothApp
    from stepscope.app.tui.hang_up import end_with_terminal

    asked = slo_of(slo) if slo is not None else None
    usable_rules()  # what cannot be used is told before the screen is taken
    with progress() as report:
        a, b = (open_trace(trace, report) for trace in traces)
    for trace in traces:
        recent.opened(trace)
    end_with_terminal(sys.stdin.fileno())
    _run(BothApp((a, b), first, asked), theme)


def _needs_terminal() -> None:
    if not sys.stdin.isatty():
        raise ConfigError("tui needs a terminal", todo="use `stepscope check` or `stepscope web`")


def look_in_terminal(
    trace: Path, page: str | None, slo: str | None, open_trace: OpenTrace, *, follow: bool = True,
    theme: str | None = None,
) -> None:  # fmt: skip
    """Open a trace, take the screen, and give it back; ConfigError where there is no terminal."""
    _needs_terminal()
    from stepscope.analyzers.check.registry import usable_rules
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.kept import recent
    from stepscope.app.live.opener import Opener
    from stepscope.app.tui.app import StepscopeApp
    from stepscope.app.tui.hang_up import end_with_terminal

    asked = slo_of(slo) if slo is not None else None
    usable_rules()  # what cannot be used is told before the screen is taken
    opener = Opener(open_trace, follow)
    with progress() as report:
        begun = opener.begin(trace, report)
    recent.opened(trace)
    end_with_terminal(sys.stdin.fileno())
    first = page or (pages.PAGES[0].name if begun.follower is None else "timeline")
    app = StepscopeApp(begun.trace, None, first, asked, follower=begun.follower, opener=opener)
    _run(app, theme)


def _run(app: Shell, theme: str | None) -> None:
    from stepscope.app.tui.theme import DARK, LIGHT, is_light_ground

    is_light = is_light_ground() if theme is None else theme == "light"
    app.theme = LIGHT if is_light else DARK
    app.run()
