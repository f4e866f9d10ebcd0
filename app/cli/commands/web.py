"""`stepscope web`: the page."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.following import followed_in, follows
from stepscope.app.cli.given import holds_slo
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.web import panes


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8050,
    show_default=True,
    help="The port to listen on; another free one if it is taken.",
)
@click.option(
    "--tab", type=click.Choice([tab.name for tab in panes.PANES]), default=panes.PANES[0].name,
    show_default=True, help="The pane below the timeline that the printed address opens.",
)  # fmt: skip
@holds_slo
@follows
@opens_traces
def web(
    trace: Path,
    host: str,
    port: int,
    tab: str,
    slo: str | None,
    follow: bool,
    open_trace: OpenTrace,
) -> None:
    """Look at TRACE in the browser.

    The address bar holds the view, so that a link shows another person the same. Only this machine
    can open the page unless --host names another address; then the printed address holds a token
    that is needed to open it. Ctrl-C stops the server.

    A recording in progress is followed: F keeps the newest step in view, H holds, L reads all.
    """
    from stepscope.analyzers.check.run import check
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app import recent
    from stepscope.app.web.server import serve

    asked = slo_of(slo) if slo is not None else None
    followed = followed_in(trace) if follow else None
    with progress() as report:
        opened = open_trace(trace, report) if followed is None else followed.first
        recent.opened(trace)
        result = check(opened, progress=report) if followed is None else None
    view = "" if tab == panes.PANES[0].name else f"?tab={tab}"
    follower = None if followed is None else followed.follower
    serve(
        opened, result, host, port, view, slo=asked, follower=follower, reopen=open_trace
    )  # fmt: skip
