"""`stepscope debug`: go through a run step by step, forward and back, and ask about it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.ending import end_by_interrupt

if TYPE_CHECKING:
    from stepscope.app.cli.prompt.loop import Loop


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--rank", type=int, default=None, help="The rank to begin with.")
@click.option("-x", "scripts", type=click.Path(path_type=Path), multiple=True, metavar="SCRIPT",
              help="Run the commands of a file first; may be repeated.")  # fmt: skip
@click.option("--batch", is_flag=True,
              help="Leave after the scripts, or at the first line that fails.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True,
              help="Answer each line with a JSON object in a line, for programs.")  # fmt: skip
@opens_traces
def debug(
    trace: Path, rank: int | None, scripts: tuple[Path, ...], batch: bool, as_json: bool,
    open_trace: OpenTrace,
) -> int:  # fmt: skip
    """Stand at any step of TRACE, go forward and back, and ask what was so and why.

    `help` lists the commands, with examples of what the trace has. Without a terminal the
    commands are read from stdin; the exit code is that of the first that failed.

    Example: stepscope debug mix.trace -x story.txt --batch
    """
    from stepscope.app.cli.prompt.lines import of_pipe, of_script
    from stepscope.app.cli.prompt.loop import Loop
    from stepscope.app.cli.prompt.printing import AsJson, AsText
    from stepscope.app.debug.debugger import Debugger

    is_typed = sys.stdin.isatty() and sys.stdout.isatty() and not (batch or as_json)
    if not is_typed:
        end_by_interrupt()  # of a person it ends what runs, and no more
    told = [line for script in scripts for line in of_script(script)]
    with progress() as report:
        debugger = Debugger(open_trace(trace, report), rank)
    loop = Loop(debugger, AsJson() if as_json else AsText())
    if not as_json:
        loop.run("where")
    is_whole = loop.run_all(told, stops_at_failure=True)
    if loop.has_ended or (batch and (scripts or not is_whole)):
        return loop.code
    if is_typed:
        return _converse(loop)
    loop.run_all(of_pipe(), stops_at_failure=batch)
    return loop.code


def _converse(loop: Loop) -> int:
    """Ask a person; what goes wrong there was said there, so it is no failure of the command."""
    from stepscope.app.cli.prompt.typing import converse

    click.echo("help lists the commands, Tab completes, Ctrl-D leaves")
    converse(loop)
    return 0
