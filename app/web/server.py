"""`stepscope web`: the page's application, and a small server for it on this machine."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from stepscope.ingest.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    import dash

    from stepscope.analyzers.check.run import CheckResult
    from stepscope.analyzers.summary.slo import Slo
    from stepscope.app.live.follower import Follower
    from stepscope.app.live.opener import Opener
    from stepscope.app.web.source import Source
    from stepscope.ingest.trace import Trace


def create_app(
    trace: Trace,
    result: CheckResult | None,
    slo: Slo | None = None,
    *,
    follower: Follower | None = None,
    reopen: Callable[[Path], Trace] | None = None,
    is_local: bool = True,
    opens_others: bool = False,
) -> dash.Dash:
    """The page over one trace and what was found in it, as an application that any WSGI runs.

    Without a `result` the page is there before the rules have run, and they run while it is shown.
    Latencies are held against the `slo`. A `follower` follows a recording in progress, of which
    `trace` is the first; what lies on the disk is opened anew by `reopen`.
    `is_local` is whether only this machine reaches it: then what was asked before is offered.
    `opens_others` is whether there is a page beside it from which another trace is opened.

    Raises MissingExtra when Dash is not installed.
    """
    build = _builder()
    from stepscope.app.web.loaded import LoadedTrace  # noqa: PLC0415 - the same
    from stepscope.app.web.source import Source, followed  # noqa: PLC0415 - the same
    from stepscope.ingest.trace import Trace  # noqa: PLC0415 - the same

    loaded = followed(follower, slo) if follower else LoadedTrace(trace, result, slo)
    source = Source(
        loaded, follower, reopen or Trace.open, slo,
        keeps_queries=is_local, opens_others=opens_others,
    )  # fmt: skip
    return build(source)


def create_both_app(
    traces: tuple[Trace, Trace], slo: Slo | None = None, *, opens_others: bool = False
) -> dash.Dash:
    """The page over two traces side by side, both held against the `slo`.

    Raises MissingExtra when Dash is not installed.
    """
    build = _builder()
    from stepscope.app.paired.pair import pair_of  # noqa: PLC0415 - Dash is an extra
    from stepscope.app.web.side_by_side.pair_source import PairSource  # noqa: PLC0415 - the same

    source = PairSource(pair_of(traces, slo=slo))
    source.opens_others = opens_others
    return build(source)


def needs_web() -> None:
    """Raise MissingExtra when Dash is not installed."""
    _builder()


def _builder() -> Callable[[Source], dash.Dash]:
    try:
        from stepscope.app.web.page import build  # noqa: PLC0415 - Dash is an extra
    except ImportError as missing:
        if missing.name not in {"dash", "plotly", "flask"}:
            raise
        todo = "pip install 'stepscope[web]'"
        raise MissingExtra("the web front needs Dash and Plotly", todo=todo) from missing
    return build


def serve(  # noqa: PLR0913 - what the command line says, each by its name
    trace: Trace,
    result: CheckResult | None,
    host: str = "127.0.0.1",
    port: int = 8050,
    view: str = "",
    *,
    browse: bool = False,
    slo: Slo | None = None,
    follower: Follower | None = None,
    opener: Opener | None = None,
    token: str | bool = True,
) -> None:
    """Serve the page until Ctrl-C or SIGTERM, and print its address; a taken port gives a free one.

    `view` is the query of the address that is printed, such as `?tab=blame`. The address holds a
    token, without which no request is answered: a new random one, or `token`; where that is False
    any user of this machine can open the page. With `browse` the user's browser is asked to. With
    an `opener` others can be opened as well, held against the same `slo`, where only this machine
    reaches the page.
    Raises ConfigError when `host` cannot be listened on, MissingExtra when Dash is not installed.
    """
    from stepscope.app.web.safety.hosts import is_loopback  # noqa: PLC0415 - few ask

    is_local = is_loopback(host)
    app = create_app(
        trace, result, slo, follower=follower, is_local=is_local,
        reopen=(lambda path: opener.read(path, None)) if opener else None,
        opens_others=is_local and opener is not None,
    )  # fmt: skip
    serve_app(app, host, port, view, browse=browse, slo=slo, opener=opener, token=token)


def serve_app(
    app: dash.Dash | None, host: str = "127.0.0.1", port: int = 8050, view: str = "", *,
    browse: bool = False, slo: Slo | None = None, opener: Opener | None = None,
    token: str | bool = True,
) -> None:  # fmt: skip
    """The same of an application that is there, or of the page alone from which traces are opened.

    Raises ConfigError where that is wanted and other machines reach it.
    """
    from stepscope.app.web import listen  # noqa: PLC0415 - Flask comes with Dash
    from stepscope.app.web.safety.access import Access, guard  # noqa: PLC0415 - the same
    from stepscope.app.web.safety.hosts import is_loopback  # noqa: PLC0415 - the same
    from stepscope.app.web.safety.link import link_to  # noqa: PLC0415 - few ask

    if app is None and not is_loopback(host):
        todo = "name a trace, or leave --host out"
        raise ConfigError("files are opened on this machine alone", where=host, todo=todo)
    access = Access.to(host, token)
    with listen.bind(host, port) as listener, ExitStack() as ended:
        taken = listener.getsockname()[1]
        if port not in (0, taken):
            click.echo(f"port {port} is taken; took {taken}", err=True)
        served: Any = app.server if app else None
        if app:
            guard(app.server, access)
        if opener and is_loopback(host):
            from stepscope.app.web.start.trace_desk import Desk  # noqa: PLC0415 - the same

            served = ended.enter_context(closing(Desk(served, access, opener, slo)))
        assert served is not None
        if not is_loopback(host):
            click.echo(
                f"whoever can reach {host} and has this address can read the trace", err=True
            )
        page = f"{listen.address(host, taken)}{access.query(view)}"
        click.echo(f"stepscope web: {page}  (Ctrl-C stops it)")
        if browse:  # it may take seconds to answer, and asks for the page before it does
            link = ended.enter_context(link_to(page))
            Thread(target=webbrowser.open, args=(link,), daemon=True).start()
        listen.until_stopped(listener, served, host)
