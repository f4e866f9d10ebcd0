"""`stepscope summary`: traces as rows of a table whose columns stay."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.analyzers.findings.wording import times
from stepscope.app.cli.gated import traces_in
from stepscope.app.cli.given import holds_slo
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import refuse_existing_file, written_whole
from stepscope.app.cli.progress import progress
from stepscope.app.cli.summed_up import summed_up
from stepscope.ingest.errors import ConfigError, TraceError

if TYPE_CHECKING:
    import polars as pl

FILES = (".parquet", ".json", ".csv")


@click.command()
@click.argument("traces", metavar="TRACE...", nargs=-1, type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", metavar="FILE", type=click.Path(path_type=Path),
              help="Write the rows there: .parquet, .csv or .json (an object a line).")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--reference", metavar="TRACE", type=click.Path(path_type=Path),
              help="Also say at which step each diverges from this one.")  # fmt: skip
@click.option("--window", metavar="STEPS", type=click.IntRange(min=1),
              help="A row for each window of so many steps, not for each trace.")  # fmt: skip
@click.option("--columns", "show_columns", is_flag=True,
              help="Print what the columns are; sum nothing up.")  # fmt: skip
@holds_slo
@opens_traces
def summary(
    traces: tuple[Path, ...], out: Path | None, force: bool, reference: Path | None,
    window: int | None, show_columns: bool, slo: str | None, open_trace: OpenTrace,
) -> int:  # fmt: skip
    """Sum up each TRACE, or each trace in a folder, as a row of a table whose columns stay.

    Who recorded it, under which configuration and workload (as digests, so that equal ones are
    found), steps, tokens, quantiles of latencies, what became of --slo, how busy queues, KV cache,
    GPUs and cores were, what each rule found, and with --reference where it diverges from that.
    What a trace does not tell is null. Numbers are those of diff, blame and check.

    With --window each row is of so many steps, counted from step 0: what happened in them, and what
    those came to who ended in them. Counts of the windows add up to those of the trace; what rules
    found, and what GPUs and cores did, is told of a whole trace alone.

    A trace that cannot be read is named, and the others are summed up; the command exits 3 then.

    Examples:

    \b
      stepscope summary run.trace
      stepscope summary runs/ --slo ttft=500ms,tpot=50ms -o runs.parquet
      stepscope summary run.trace --window 100 -o windows.csv
    """
    from stepscope.analyzers.many_runs.trace_row import table_of
    from stepscope.analyzers.summary.slo import slo_of

    if show_columns:
        return _show_columns()
    if window is not None and reference is not None:
        raise click.UsageError("--reference compares whole traces, and --window is of a part.")
    if not traces:
        raise click.UsageError("Missing argument 'TRACE...'.")
    if out is not None:
        if out.suffix not in FILES:
            raise ConfigError("no table is written there", where=str(out),
                              todo=f"name a file that ends in {', '.join(FILES)}")  # fmt: skip
        refuse_existing_file(out, *traces, force=force)
    asked = (slo, slo_of(slo)) if slo is not None else None
    paths = dict.fromkeys(each for path in traces for each in traces_in(path) or [path])
    with progress() as report:
        other = None if reference is None else (str(reference), open_trace(reference, report))
        rows, num_unread = summed_up(paths, asked, other, open_trace, report, window)
    _write(table_of(rows), out)
    return TraceError.exit_code if num_unread else 0


def _write(table: pl.DataFrame, out: Path | None) -> None:
    if out is None:
        _print(table)
        return
    written = io.BytesIO()
    if out.suffix == ".parquet":
        table.write_parquet(written)
    elif out.suffix == ".csv":
        _flat(table).write_csv(written)
    else:
        table.write_ndjson(written)
    written_whole(out, written.getvalue())
    rows, columns = times(len(table), "row"), times(len(table.columns), "column")
    click.echo(f"wrote {out}: {rows} of {columns}", err=True)


def _flat(table: pl.DataFrame) -> pl.DataFrame:
    """Lists as texts, for a format that has none: `COR001=3 STV001=0`."""
    import polars as pl

    one = pl.element().struct
    counted = pl.format("{}={}", one.field("code"), one.field("found"))
    return table.with_columns(
        pl.col("findings").list.eval(counted).list.join(" "),
        pl.col("not_applicable").list.join(" "),
    )


def _print(table: pl.DataFrame) -> None:
    """A column for each trace: that many numbers have no room beside each other."""
    from stepscope.app.text_table import print_table

    shown = _flat(table).drop("config")
    rows = [
        (name, *shown[name].to_list())
        for name in shown.columns
        if shown[name].null_count() < len(shown) or name == "trace"
    ]
    print_table(["", *(f"{number}" for number in range(1, len(shown) + 1))], rows)
    click.echo("what is not told of any of them is left out", err=True)


def _show_columns() -> int:
    from stepscope.analyzers.many_runs.trace_row import COLUMNS, VERSION
    from stepscope.app.text_table import print_table

    click.echo(f"version {VERSION}; null is what a trace does not tell")
    print_table(["column", "type", "meaning"], [(c.name, str(c.type), c.meaning) for c in COLUMNS])
    return 0
