"""`stepscope sql`: ask a trace's tables a question."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.given import Duration
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress

if TYPE_CHECKING:
    import polars as pl

ARCHIVE = "fleet.json"
"""A folder that has it is an archive, and no trace."""
PART_ROWS = 50_000
"""Rows that are made text at a time."""


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("query")
@click.option(
    "--format", "form", type=click.Choice(("table", "csv", "json")), default="table",
    show_default=True, help="Output format.",
)  # fmt: skip
@click.option(
    "--timeout", "seconds", type=Duration(), metavar="SECONDS", default=20.0, show_default=True,
    help="Give the query up after so long; `inf` is without end. Ctrl-C ends it.",
)  # fmt: skip
@click.option(
    "--memory", "gibibytes", type=click.FloatRange(1, 1 << 20), metavar="GIB",
    help="Run the query in a process of its own that may map so much memory, what Polars reserves "
         "included.  [default: 8, for queries that may take much]",
)  # fmt: skip
@opens_traces
def sql(
    trace: Path,
    query: str,
    form: str,
    seconds: float,
    gibibytes: float | None,
    open_trace: OpenTrace,
) -> None:
    """Run the SQL QUERY over the tables of TRACE (`stepscope info` names them).

    The table `findings` is what `stepscope check` finds in it. TRACE may be an archive that
    `stepscope fleet` made, too, with the tables traces, findings, failures and files.

    All rows of the answer are printed; columns of one name are numbered (`ts_ns`, `ts_ns_2`). The
    query is given up after 20 seconds, as on the page; --timeout raises that. A query that may take
    much memory, such as a large join, runs in a process of its own that has 8 GiB; --memory raises
    that. A query may have 20 levels of nesting, 500 operators in a chain and 100 SELECTs.

    Examples:

    \b
      stepscope sql mix.trace "select kind, count(*) as steps from steps group by kind"
      stepscope sql mix.trace "select code, sum(count) as found from findings group by code"
    """
    from stepscope.ingest.query import Bounds

    bounds = Bounds(
        None if seconds == math.inf else seconds,
        rows=None,
        memory_bytes=None if gibibytes is None else int(gibibytes * (1 << 30)),
    )
    if (trace / ARCHIVE).is_file():
        from stepscope.analyzers.fleet.archive.partitions import asked_of

        answer = asked_of(trace, query, bounds)
    else:
        with progress() as report:
            opened = open_trace(trace, report)
        answer = opened.sql(query, bounds)
    _PRINTERS[form](answer)


def _print_table(answer: pl.DataFrame) -> None:
    from stepscope.app.text_table import print_table

    print_table(answer.columns, answer.iter_rows())


def _print_csv(answer: pl.DataFrame) -> None:
    # By parts, and not by Polars, whose errors of a pipe or a disk name neither.
    click.echo(answer.head(0).write_csv(), nl=False)
    for part in answer.iter_slices(PART_ROWS):
        click.echo(part.write_csv(include_header=False), nl=False)


def _print_json(answer: pl.DataFrame) -> None:
    click.echo(answer.write_json())


_PRINTERS = {"table": _print_table, "csv": _print_csv, "json": _print_json}
