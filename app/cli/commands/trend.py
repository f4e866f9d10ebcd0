"""`stepscope trend`: metrics over commits or days, and where their level changes."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.analyzers.findings.wording import times
from stepscope.app.cli.complaints import complain
from stepscope.app.cli.given import given_twice, holds_slo
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import refuse_existing_file, written_whole
from stepscope.app.cli.progress import progress
from stepscope.app.cli.summaries import is_summary, rows_of, summaries_and_traces
from stepscope.app.cli.summed_up import summed_up
from stepscope.ingest.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from stepscope.analyzers.many_runs.trend import Trend

Rows = Sequence[Mapping[str, Any]]


@click.command()
@click.argument("paths", metavar="PATH...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("--metric", "metrics", multiple=True, metavar="COLUMN",
              help="Look at this column alone, any of numbers; may be repeated.")  # fmt: skip
@click.option("--by", metavar="COLUMN",
              help="Make runs that are equal in this column, such as a commit, one point: their "
                   "median. A column of numbers or times is the order, too.")  # fmt: skip
@click.option("--as-given", is_flag=True,
              help="Keep the order of the files and of their rows.  [default: by when the runs "
                   "were recorded, where all say that]")  # fmt: skip
@click.option("--together", is_flag=True,
              help="Compare runs of all producers, workloads and configurations.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text",
              show_default=True, help="How to print it.")  # fmt: skip
@click.option("-o", "--output", "out", metavar="FILE.html", type=click.Path(path_type=Path),
              help="Draw it as one page that opens from a disk and fetches nothing.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@holds_slo
@opens_traces
def trend(  # noqa: PLR0913, PLR0917 - one per option
    paths: tuple[Path, ...], metrics: tuple[str, ...], by: str | None, as_given: bool,
    together: bool, form: str, out: Path | None, force: bool, slo: str | None,
    open_trace: OpenTrace,
) -> int:  # fmt: skip
    """Show metrics of many runs over commits or days, and name the runs where a level changes.

    Each PATH is a file that `stepscope summary -o` wrote, a folder of these, a trace, or a folder
    of traces, which are summed up first. Runs of one producer, workload and configuration make a
    group; others are not compared with each other.

    A change is told where so strong a one comes by chance in at most 5% of tables in which nothing
    changed, all metrics, groups and places taken together; it takes some 8 runs on each side. What
    a run does not tell is left out and counted.

    The command exits 0 whatever changed, and 3 where a file or a trace cannot be read: of several
    the others are shown.

    Examples:

    \b
      stepscope trend nightly/
      stepscope trend nightly.parquet --by commit --metric ttft_p99_ns -o trend.html
    """
    from stepscope.analyzers.many_runs.trend import METRICS
    from stepscope.analyzers.many_runs.trend import trend as trend_of

    if again := given_twice(metrics):
        raise click.UsageError(f"--metric {again} is given more than once.")
    if out is not None:
        if out.suffix not in (".html", ".htm"):
            raise ConfigError("no page is written there", where=str(out),
                              todo="name a file that ends in .html")  # fmt: skip
        refuse_existing_file(out, *paths, force=force)
    rows, num_unread = _rows(paths, slo, open_trace)
    if not rows:
        return TraceError.exit_code
    for metric in metrics:
        _refuse_no_numbers(rows, metric)
    if by is not None:
        _refuse_no_keys(rows, by)
    found = trend_of(rows, metrics or METRICS, by, as_given=as_given, together=together)
    if out is None:
        _print(found, form)
    else:
        _write(found, out)
    return TraceError.exit_code if num_unread else 0


def _rows(
    paths: Sequence[Path], slo: str | None, open_trace: OpenTrace
) -> tuple[list[dict[str, Any]], int]:
    """The rows of all files, and how many files or traces could not be read."""
    from stepscope.analyzers.summary.slo import slo_of

    asked = (slo, slo_of(slo)) if slo is not None else None
    rows, num_unread = [], 0
    every, num_left_out = summaries_and_traces(paths)
    with progress() as report:
        for path in every:
            try:
                if is_summary(path):
                    rows += rows_of(path)
                    continue
                own, _ = summed_up([path], asked, None, open_trace, report)
                rows += own
            except TraceError as error:
                if len(every) == 1:
                    raise
                complain(str(error))
                num_unread += 1
    if num_left_out:
        traces = times(num_left_out, "trace")
        click.echo(f"{traces} beside summaries left out: name them to have them", err=True)
    return rows, num_unread


def _refuse_no_numbers(rows: Rows, metric: str) -> None:
    """Raise ConfigError where a metric is no column of numbers."""
    from stepscope.analyzers.many_runs.trend import STEPS_PER_S

    values = [row[metric] for row in rows if metric in row]
    if not values and metric != STEPS_PER_S:
        raise ConfigError(f"there is no column {metric}", where="--metric", todo=_columns(rows))
    strange = (each for each in values if each is not None and not _is_number(each))
    if (one := next(strange, None)) is not None:
        what = f"column {metric} holds no numbers but such as {str(one)[:40]}"
        raise ConfigError(what, where="--metric", todo=_columns(rows))


def _refuse_no_keys(rows: Rows, by: str) -> None:
    """Raise ConfigError where a run says nothing in the column that makes points."""
    if not any(by in row for row in rows):
        names = sorted({name for row in rows for name in row})
        raise ConfigError(f"there is no column {by}", where="--by",
                          todo=f"there are {', '.join(names)}")  # fmt: skip
    untold = [row for row in rows if row.get(by) is None]
    if untold:
        what = f"{len(untold):,} of {len(rows):,} runs say nothing in column {by}"
        raise ConfigError(f"{what}, {untold[0].get('trace')} the first", where="--by",
                          todo="fill it in, or name another column")  # fmt: skip
    if not all(isinstance(row[by], Hashable) for row in rows):
        raise ConfigError(f"column {by} holds lists", where="--by", todo="name another column")


def _columns(rows: Rows) -> str:
    columns = {name for row in rows for name, value in row.items() if _is_number(value)}
    return f"numbers are in {', '.join(sorted(columns - {'summary_version'}))}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _print(found: Trend, form: str) -> None:
    from stepscope.app.present.trend.in_text import as_dict, markdown_lines, text_lines

    if form == "json":
        click.echo(json.dumps(as_dict(found), indent=2, ensure_ascii=True))
        return
    for line in text_lines(found) if form == "text" else markdown_lines(found):
        click.echo(line)


def _write(found: Trend, out: Path) -> None:
    try:
        from stepscope.app.web.trend.figures_page import trend_page
    except ModuleNotFoundError as error:
        from stepscope.ingest.errors import MissingExtra

        if error.name not in ("plotly", "dash"):
            raise
        raise MissingExtra("drawing needs an extra", where=str(out),
                           todo="pip install 'stepscope[web]'") from error  # fmt: skip
    from stepscope.app.present.trend.changes_said import verdict

    written_whole(out, trend_page(found))
    click.echo(f"wrote {out}: {verdict(found)}", err=True)
