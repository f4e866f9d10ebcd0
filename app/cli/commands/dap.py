"""`stepscope dap`: the debugger for editors that speak the Debug Adapter Protocol."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.ending import end_by_interrupt, end_with_reader


@click.command()
@click.argument("trace", type=click.Path(path_type=Path), required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=None, metavar="N",
              help="Listen on this port of 127.0.0.1 instead; 0 takes a free one.")  # fmt: skip
@opens_traces
def dap(trace: Path | None, port: int | None, open_trace: OpenTrace) -> int:
    """Debug TRACE from an editor, by the Debug Adapter Protocol.

    Editors start it and talk over stdin and stdout; without TRACE, `launch` names it. Ranks are
    threads, steps lines; it ends when its one client goes.

    Example: stepscope dap mix.trace --port 4711
    """
    from stepscope.app.dap.adapter import Adapter
    from stepscope.app.dap.talking import talk, talk_at_port

    end_by_interrupt()
    adapter = Adapter(open_trace, trace)
    if port is None:
        end_with_reader(sys.stdout.fileno())
        talk(adapter, sys.stdin.buffer, sys.stdout.buffer)
    else:
        talk_at_port(adapter, port, lambda line: click.echo(line, err=True))
    return 0
