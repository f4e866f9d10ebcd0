"""`stepscope blame`: where each request's time went."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.given import holds_slo
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress

if TYPE_CHECKING:
    import polars as pl

    from stepscope.analyzers.latency.blame import Blame
    from stepscope.analyzers.summary.slo import Judged
    from stepscope.ingest.trace import Trace

SORTS = {"latency": "latency_ns", "arrival": "arrive_ns", "ttft": "ttft_ns", "request": "request"}
NARROWEST, WIDEST = 60, 160
MOST_WAITS = 12


@click.command()
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option(
    "--request", metavar="R", help="Explain one request, named by its id or by its client's id."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(("text", "json", "csv")),
    default="text",
    show_default=True,
    help="Output format; csv has one row for each request.",
)
@click.option("--sort", default="latency", show_default=True, metavar="BY",
              help="Sort by latency, ttft (time to first token), arrival, request, or a cause; the "
                   "worst request comes first.")  # fmt: skip
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=0),
              help="The number of requests to print; 0 prints all.")  # fmt: skip
@holds_slo
@opens_traces
def blame(
    path: Path,
    request: str | None,
    form: str,
    sort: str,
    limit: int,
    slo: str | None,
    open_trace: OpenTrace,
) -> None:
    """Split the latency of each request into its causes.

    The causes of a request add up to its latency exactly. At each moment the request was in the
    front end; in the queue (for want of KV blocks, a running slot or token budget, behind a chunk,
    a bucket, a phase, the head of the queue or the step that ran, or for what a decision names);
    not ready (waiting for a grammar, or for KV from another machine); preempted; in a batch
    (formed, recompute, prefill or decode, and within these communication, dispatch, gpu-wait and
    launch); or on its way to the client (delivery). Time that the trace does not explain is idle
    or unknown, and a note says why. A request behind the head of the queue waits for what the head
    lacks.

    A profile names no requests. Its run is split by what the GPU did at each moment (gemm,
    attention, another kernel, exposed communication, copy) and by why it did nothing (gpu-wait: a
    kernel was launched and had not begun, or the CPU was blocked; launch; idle). A profile without
    kernels is split by the kinds of its steps.

    Goodput is the number of requests a second that meet all of --slo. A request of which a latency
    is not known is neither met nor missed, and is counted apart.

    Examples:

    \b
      stepscope blame run.trace                           all causes, and a waterfall
      stepscope blame run.trace --sort preempted          requests that lost most to preemptions
      stepscope blame run.trace --request req-07          one request, with the recorded reasons
      stepscope blame run.trace --slo ttft=500ms,tpot=50ms    who missed that, and why
      stepscope blame run.trace --format csv --limit 0    a row for each request, for a spreadsheet
    """
    from stepscope.analyzers.latency.blame import blame as split
    from stepscope.analyzers.summary.slo import judged as judge
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.present.blame_text import note_lines

    column, asked = _column(sort), slo_of(slo) if slo is not None else None
    with progress() as report:
        trace = open_trace(path, report)
        report("adding up", 0, None)
        blamed = split(trace, request)
        judged = judge(trace, blamed, asked) if asked else None
    order = in_order(blamed, column)
    shown = order.head(min(limit, len(order))) if limit else order
    if form == "json":
        click.echo(json.dumps(as_dict(blamed, shown, judged), indent=2))
    elif form == "csv":
        click.echo(_as_csv(blamed, shown, judged), nl=False)
        click.echo("".join(f"{line}\n" for line in note_lines(blamed)), err=True, nl=False)
    else:
        for line in _text(trace, blamed, shown, sort, judged):
            click.echo(line)


def _column(sort: str) -> str:
    """Column of the table to sort by; raises ConfigError naming near matches."""
    from difflib import get_close_matches

    from stepscope.analyzers.latency.causes import CAUSES, GROUPS
    from stepscope.ingest.errors import ConfigError

    columns = {**SORTS, **{cause.name: cause.column for cause in CAUSES}}
    columns |= {group: f"{group} in all" for group in GROUPS}
    if sort not in columns:
        near = get_close_matches(sort, columns, n=3) or list(columns)
        raise ConfigError(
            f"--sort {sort}: requests cannot be sorted by this", todo=f"choose {', '.join(near)}"
        )
    return columns[sort]


def in_order(blamed: Blame, column: str) -> pl.DataFrame:
    """The requests, the worst first, with their place in the tables of `blamed` as `place`."""
    import polars as pl

    from stepscope.analyzers.latency.causes import CAUSES, GROUPS

    in_all = {
        f"{group} in all": pl.sum_horizontal(
            cause.column for cause in CAUSES if cause.group == group
        )
        for group in GROUPS
    }
    told = blamed.requests.with_row_index("place").with_columns(
        ttft_ns=pl.col("first_token_ns") - pl.col("arrive_ns"), **in_all
    )
    ascending = column in {"arrive_ns", "request"}
    return told.sort(column, descending=not ascending, nulls_last=True, maintain_order=True)


def _text(
    trace: Trace, blamed: Blame, shown: pl.DataFrame, sort: str, judged: Judged | None
) -> list[str]:
    from stepscope.app.present.blame_bars import Bars
    from stepscope.app.present.blame_text import note_lines, summary_lines, waterfall_lines

    width = min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)
    if len(blamed.requests) == 1:
        return [*_one(trace, blamed, width, judged), *_spaced(note_lines(blamed))]
    rows = shown.to_dicts()
    what = "requests" if blamed.names_requests else "ranks"
    which = f"{len(rows):,} of {len(blamed.requests):,} {what}, by {sort}"
    waterfall = waterfall_lines(Bars(blamed), rows, width, which)
    slo = _slo_lines(judged, len(rows)) if judged else []
    parts = (summary_lines(blamed), slo, waterfall, note_lines(blamed))
    return [line for part in parts for line in _spaced(part)][1:]


def _slo_lines(judged: Judged, most: int) -> list[str]:
    from stepscope.app.present.plain_text import lines
    from stepscope.app.present.summary.slo_words import slo_blocks

    return lines(slo_blocks(judged, most))


def _one(trace: Trace, blamed: Blame, width: int, judged: Judged | None) -> list[str]:
    from stepscope.app.present.blame_bars import Bars
    from stepscope.app.present.blame_reasons import reasons, waits_of
    from stepscope.app.present.blame_text import request_lines, wait_lines

    row, to_first = blamed.requests.row(0, named=True), blamed.to_first_token.row(0, named=True)
    waits = waits_of(blamed.intervals)
    longest = wait_lines(waits, reasons(trace, waits), MOST_WAITS, row["arrive_ns"])
    slo = _one_slo(judged) if judged else []
    return [*request_lines(Bars(blamed), row, to_first, width), *_spaced(slo), *_spaced(longest)]


def _one_slo(judged: Judged) -> list[str]:
    from stepscope.app.present.plain_text import table_lines
    from stepscope.app.present.summary.slo_words import NO_REQUESTS, request_slo

    if judged.requests.is_empty():
        return [NO_REQUESTS]
    return [*table_lines(request_slo(judged))]


def _spaced(lines: Any) -> list[str]:
    listed = list(lines)
    return ["", *listed] if listed else []


def as_dict(blamed: Blame, shown: pl.DataFrame, judged: Judged | None) -> dict[str, Any]:
    """What `--format json` prints of the requests that are `shown`."""
    from stepscope.analyzers.latency.causes import CAUSES

    return {
        "trace": blamed.trace,
        "causes": [
            {"name": each.name, "group": each.group, "meaning": each.meaning} for each in CAUSES
        ],
        "num_requests": len(blamed.requests),
        "total_ns": blamed.total_ns,
        "totals": {
            each.cause.name: {
                "total_ns": each.total_ns,
                "share": each.share,
                **{f"{name}_ns": ns for name, ns in each.each_ns.items()},
                "requests": each.num_requests,
            }
            for each in blamed.totals()
        },
        "requests": [_request(row, blamed) for row in shown.iter_rows(named=True)],
        **({"slo": _slo_as_dict(judged, shown)} if judged else {}),
        "notes": list(blamed.notes),
    }  # fmt: skip


def _slo_as_dict(judged: Judged, shown: pl.DataFrame) -> dict[str, Any]:
    """What became of the SLO; `requests` are those that are shown, in their order."""
    rows = judged.requests[shown["place"].to_list()] if len(judged.requests) else judged.requests
    return {
        "limits_ns": judged.slo.limits_ns,
        "goodput_per_s": judged.goodput,
        "finished_per_s": judged.throughput,
        "span_ns": judged.span_ns,
        "verdicts": judged.counts,
        "objectives": [asdict(each) for each in judged.objectives()],
        "requests": rows.to_dicts(),
    }


def _request(row: dict[str, Any], blamed: Blame) -> dict[str, Any]:
    from stepscope.analyzers.latency.blame import ABOUT
    from stepscope.analyzers.latency.causes import CAUSES

    first = blamed.to_first_token.row(row["place"], named=True)
    return {
        **{name: row[name] for name in ABOUT},
        "blame_ns": {each.name: row[each.column] for each in CAUSES if row[each.column]},
        "to_first_token_ns": {
            each.name: first[each.column] for each in CAUSES if first[each.column]
        },
    }


def _as_csv(blamed: Blame, shown: pl.DataFrame, judged: Judged | None) -> str:
    """A row per request; columns of the time until the first token are marked as such."""
    import polars as pl

    from stepscope.analyzers.latency.blame import ABOUT, COLUMNS
    from stepscope.app.printable import plain

    first = blamed.to_first_token.select(
        pl.col(COLUMNS).name.map(lambda name: name.replace("_ns", "_to_first_token_ns"))
    )
    places = shown["place"].to_list()
    table = shown.select(*ABOUT, *COLUMNS).hstack(first[places])
    if judged and len(judged.requests):
        told = judged.requests[places].select(
            "ttft_ns", "tpot_ns", slo="verdict", slo_cause="cause"
        )
        table = table.hstack(told)
    safe = pl.col("request", "outcome").map_elements(plain, return_dtype=pl.String)
    return table.with_columns(safe).write_csv()
