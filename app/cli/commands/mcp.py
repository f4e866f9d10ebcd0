"""`stepscope mcp`: the server for assistants that speak the Model Context Protocol."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.ending import end_by_interrupt, end_with_reader


@click.command()
@click.argument(
    "folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option("--http", is_flag=True,
              help="Serve over HTTP on 127.0.0.1 instead, and print a token once.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, metavar="N",
              help="The port for --http; 0 takes a free one.")  # fmt: skip
@opens_traces
def mcp(folders: tuple[Path, ...], http: bool, port: int, open_trace: OpenTrace) -> int:
    """Answer an assistant's questions about the traces below each FOLDER.

    It is a server of the Model Context Protocol: clients start it and talk over stdin and stdout.
    It reads what lies below the named folders and nothing else, writes nothing but the cache, and
    no answer is longer than 25,000 tokens.

    Examples:

    \b
      stepscope mcp runs/
      stepscope mcp runs/ profiles/ --http --port 8060
    """
    if port and not http:
        raise click.UsageError("--port is for --http.")
    end_by_interrupt()
    serving = _serving()
    server = serving.server_over(folders, open_trace)
    if http:
        serving.serve_http(server, port, lambda line: click.echo(line, err=True))
    else:
        end_with_reader(sys.stdout.fileno())
        serving.serve_stdio(server)
    return 0


def _serving() -> ModuleType:
    """The module that serves; raises MissingExtra where the SDK is not installed."""
    from importlib import import_module

    from stepscope.ingest.errors import MissingExtra

    try:
        return import_module("stepscope.app.mcp.transports")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0].startswith("stepscope"):
            raise
        todo = "pip install 'stepscope[mcp]'"
        raise MissingExtra(
            "the server for assistants needs the package mcp", todo=todo
        ) from missing
