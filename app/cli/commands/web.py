"""`stepscope web`: the page."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8050, show_default=True, help="Port; a free one if it is taken.")
@opens_traces
def web(trace: Path, host: str, port: int, open_trace: OpenTrace) -> None:
    """Look at TRACE in the browser; the address holds the view, so it can be sent on.

    Serves this machine only unless --host says otherwise. Ctrl-C stops it.
    """
    from stepscope.analyzers.check.run import check
    from stepscope.app.web.server import serve

    with progress() as report:
        opened = open_trace(trace, report)
        result = check(opened, progress=report)
    serve(opened, result, host, port)
