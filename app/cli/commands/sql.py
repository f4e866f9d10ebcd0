"""`stepscope sql`: ask a trace's tables a question."""

from __future__ import annotations

import sys
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


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("query")
@click.option(
    "--format", "form", type=click.Choice(("table", "csv", "json")), default="table",
    show_default=True, help="Output format.",
)  # fmt: skip
@click.option(
    "--timeout", "seconds", type=Duration(), metavar="SECONDS",
    help="Give the query up after so long; by default never. Ctrl-C ends it.",
)  # fmt: skip
@opens_traces
def sql(
    trace: Path, query: str, form: str, seconds: float | None, open_trace: OpenTrace
) -> None:  # fmt: skip
    """Run the SQL QUERY over the tables of TRACE (`stepscope info` names them).

    The table `findings` is what `stepscope check` finds in it. TRACE may be an archive that
    `stepscope fleet` made, too, with the tables traces, findings, failures and files.

    The query runs as long as it takes, and all of its rows are printed. A large join runs in a
    process of its own that has 8 GiB, so that it fails in a line and not for want of memory.

    Examples:

    \b
      stepscope sql mix.trace "select kind, count(*) as steps from steps group by kind"
      stepscope sql mix.trace "select code, sum(count) as found from findings group by code"
    """
    from stepscope.ingest.query import Bounds

    bounds = Bounds(seconds, rows=None)
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
    answer.write_csv(sys.stdout)


def _print_json(answer: pl.DataFrame) -> None:
    click.echo(answer.write_json())


_PRINTERS = {"table": _print_table, "csv": _print_csv, "json": _print_json}
