"""`stepscope convert`: write a trace in another format."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.ingest.errors import TraceError


@click.command()
@click.argument("src", type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path),
              help="Where to write; the ending chooses the format.")  # fmt: skip
@opens_traces
def convert(src: Path, out: Path, open_trace: OpenTrace) -> None:
    """Write SRC as another format, chosen by the ending of OUT.

    .trace is a directory of Parquet files and holds all of it. .pftrace (or .pftrace.gz) is
    Perfetto's own format, which https://ui.perfetto.dev opens: tracks that nest, counters with
    their units, every nanosecond. .json (or .json.gz) is Chrome JSON, which chrome://tracing
    and many other viewers open as well.

    Both show the spans, counters and arrows of a trace, and what an engine recorded as slices:
    steps, requests, core groups, decisions, collectives. SRC is any file that `stepscope info`
    reads; of one in which nothing was read nothing is written, and it exits 3.
    """
    from stepscope.analyzers.check.coverage import UNREAD, recorded
    from stepscope.ingest.writers import writer_of

    writer = writer_of(out)
    with progress() as report:
        trace = open_trace(src, report)
        if not recorded(trace):
            raise TraceError(
                UNREAD, where=str(src), todo="see what it says of itself: stepscope info"
            )
        report(f"writing {out.name}", 0, None)
        writer.write(trace, out)
    click.echo(f"wrote {out}", err=True)
