"""`stepscope why`: the chain from who waits to the root."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress

if TYPE_CHECKING:
    from stepscope.app.present.longest_waits import LongestWaits


@click.command()
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))
@click.argument("subject", metavar="[SUBJECT]", required=False)
@click.option("--at", metavar="POS", help="Where: 86, 8.66s, 40%, @name, #1234, start or end.  "
              "[default: where it waited last]")  # fmt: skip
@click.option("--not-in", "step", metavar="STEP", type=int,
              help="Why it was not in the batch of this step.")  # fmt: skip
@click.option("--rank", metavar="N", type=int, help="The rank; by default the lowest with steps.")
@click.option("--limit", default=10, show_default=True, type=click.IntRange(min=0),
              help="Without SUBJECT: the number of requests to print; 0 prints all.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the chain, or the table, as JSON.")
@opens_traces
def why(
    path: Path,
    subject: str | None,
    at: str | None,
    step: int | None,
    rank: int | None,
    limit: int,
    as_json: bool,
    open_trace: OpenTrace,
) -> None:
    """Follow a wait from who waits to the root.

    Without SUBJECT, a table names the requests that waited longest, for what, and why they still
    waited at the end of their last wait.

    SUBJECT is a request by its id, or a task, a core or a rank, as in "task 17". Each line says who
    waits for how much of what, who holds it at that position, and which row proves it. The first
    line is the dominant cause: a policy, a holder that runs until some time, another rank, a leak,
    silence (nobody looked), a wait cycle, or that it is not recorded.

    Examples:

    \b
      stepscope why run.trace                      who waited longest, and why
      stepscope why run.trace req-17               where it waited last
      stepscope why run.trace req-17 --at 86       when step 86 was formed
      stepscope why run.trace req-17 --not-in 86   why it was not in that batch
      stepscope why run.trace "rank 1" --at 1.48s
    """
    from stepscope.app.debug.debugger import Debugger
    from stepscope.app.debug.debugger.why_anywhere import rank_that_has, why_anywhere
    from stepscope.app.debug.why import why_not
    from stepscope.app.debug.why.last_wait import last_wait
    from stepscope.app.present.longest_waits import longest_waits
    from stepscope.app.printable import plain
    from stepscope.ingest.errors import ConfigError

    if at is not None and step is not None:
        raise ConfigError("--at and --not-in are two places", todo="give one of them")
    if subject is None:
        if at is not None or step is not None:
            raise ConfigError("--at and --not-in are about one request", todo="name it")
        with progress() as report:
            waited = longest_waits(open_trace(path, report), rank, limit or None, report)
        _print_waits(waited, path, as_json=as_json)
        return
    with progress() as report:
        debugger = Debugger(open_trace(path, report), rank)
        session = debugger.session
        if step is not None:
            chain = why_not(session, subject, step)
        else:
            own = debugger.session_of(rank_that_has(session, subject) if rank is None else rank)
            where = last_wait(own, subject) if at is None else debugger.position_of(at)
            chain = why_anywhere(session, subject, where, debugger.session_of)
    if as_json:
        click.echo(json.dumps(chain.as_dict(), indent=2))
        return
    for line in chain.lines():
        click.echo(plain(line))


def _print_waits(waited: LongestWaits, path: Path, *, as_json: bool) -> None:
    from stepscope.app.present.plain_text import table_lines
    from stepscope.app.printable import plain

    if as_json:
        click.echo(json.dumps(waited.as_dict(), indent=2))
        return
    click.echo(plain(waited.summary))
    if not waited.rows:
        return
    for line in table_lines(waited.table):
        click.echo(line)
    named = shlex.join([str(path), waited.rows[0].request])
    click.echo(f"\nThe whole chain of one: stepscope why {plain(named)}")
