"""`stepscope sql`: ask a trace's tables a question."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress

if TYPE_CHECKING:
    import polars as pl


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.argument("query")
@click.option(
    "--format", "form", type=click.Choice(("table", "csv", "json")), default="table",
    show_default=True, help="Output format.",
)  # fmt: skip
@opens_traces
def sql(trace: Path, query: str, form: str, open_trace: OpenTrace) -> None:
    """Run the SQL QUERY over the tables of TRACE (`stepscope info` names them).

    Example: stepscope sql mix.trace "select kind, count(*) as steps from steps group by kind"
    """
    with progress() as report:
        answer = open_trace(trace, report).sql(query)
    _PRINTERS[form](answer)


def _print_table(answer: pl.DataFrame) -> None:
    from stepscope.app.text_table import print_table

    print_table(answer.columns, answer.iter_rows())


def _print_csv(answer: pl.DataFrame) -> None:
    answer.write_csv(sys.stdout)


def _print_json(answer: pl.DataFrame) -> None:
    click.echo(answer.write_json())


_PRINTERS = {"table": _print_table, "csv": _print_csv, "json": _print_json}
