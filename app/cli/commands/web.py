"""`stepscope web`: the page."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.following import follows
from stepscope.app.cli.given import holds_slo, two_of
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.cli.tokens import needs_token
from stepscope.app.web import panes
from stepscope.ingest.errors import ConfigError


@click.command()
@click.argument("traces", metavar="[TRACE [TRACE]]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    default=8050,
    show_default=True,
    help="The port to listen on; another free one if it is taken.",
)
@click.option(
    "--tab", type=click.Choice([tab.name for tab in panes.PANES]), default=panes.OPEN_FIRST,
    show_default=True, help="The pane below the timeline that the printed address opens.",
)  # fmt: skip
@needs_token
@holds_slo
@follows
@opens_traces
def web(
    traces: tuple[Path, ...],
    host: str,
    port: int,
    tab: str,
    token: str | bool,
    slo: str | None,
    follow: bool,
    open_trace: OpenTrace,
) -> None:
    """Look at TRACE in the browser; without one, at a page from which traces are opened.

    The address bar holds the view, so that a link shows another person the same. Only this machine
    can open the page unless --host names another address. The printed address holds a token that is
    needed to open it; the browser keeps it as a cookie, for this port. Ctrl-C stops the server.

    Two traces, A and B, are shown side by side under one cursor: D goes to where they diverge
    first, t lays B on A by time, by step or by a request's arrival, X exchanges them.

    "open" leads to the traces that were opened last, takes a path, and a file that is dropped on
    it, which is copied to a folder that is gone when the server stops. Where other machines reach
    the page it opens no others.

    Lanes are there before the rules have run; what they find comes as soon as they have.

    A recording in progress is followed: F keeps the newest step in view, H holds, L reads all.
    """
    if not traces:
        open_from_page(host, port, slo, open_trace, follow=follow, token=token)
        return
    if len(traces) > 1:
        look_at_both(
            two_of(traces), host, port, tab, open_trace, slo=slo, follow=follow, token=token
        )
        return
    (trace,) = traces
    from stepscope.analyzers.check.registry import usable_rules
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.kept import recent
    from stepscope.app.live.opener import Opener
    from stepscope.app.web.server import serve

    asked = slo_of(slo) if slo is not None else None
    usable_rules()  # what cannot be used is told before the page is there
    opener = Opener(open_trace, follow)
    with progress() as report:
        begun = opener.begin(trace, report)
        recent.opened(trace)
    view = "" if tab == panes.OPEN_FIRST else f"?tab={tab}"
    serve(
        begun.trace, None, host, port, view, slo=asked, follower=begun.follower, opener=opener,
        token=token,
    )  # fmt: skip


def open_from_page(
    host: str, port: int, slo: str | None, open_trace: OpenTrace, *, follow: bool = True,
    browse: bool = False, token: str | bool = True,
) -> None:  # fmt: skip
    """Serve the page from which traces are opened."""
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.live.opener import Opener
    from stepscope.app.web.server import needs_web, serve_app

    asked = slo_of(slo) if slo is not None else None
    needs_web()
    serve_app(
        None, host, port, browse=browse, slo=asked, opener=Opener(open_trace, follow), token=token
    )


def look_at_both(  # noqa: PLR0913 - what the command line says, each by its name
    traces: tuple[Path, Path], host: str, port: int, tab: str, open_trace: OpenTrace, *,
    slo: str | None = None, follow: bool = True, browse: bool = False,
    token: str | bool = True,
) -> None:  # fmt: skip
    """Serve two traces side by side; ConfigError for a pane that two do not have."""
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.kept import recent
    from stepscope.app.live.opener import Opener
    from stepscope.app.web.safety.hosts import is_loopback
    from stepscope.app.web.server import create_both_app, serve_app

    if tab not in panes.OF_TWO:
        raise ConfigError(f"two traces have no {tab} pane", todo="open one of them alone")

    asked = slo_of(slo) if slo is not None else None
    with progress() as report:
        a, b = (open_trace(trace, report) for trace in traces)
        for trace in traces:
            recent.opened(trace)
        report("comparing", 0, None)
        app = create_both_app((a, b), asked, opens_others=is_loopback(host))
    view = "" if tab == panes.OPEN_FIRST else f"?tab={tab}"
    serve_app(
        app, host, port, view, browse=browse, slo=asked, opener=Opener(open_trace, follow),
        token=token,
    )  # fmt: skip
