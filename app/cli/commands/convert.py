"""`stepscope convert`: write a trace in another format."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import may_overwrite, refuse_existing
from stepscope.app.cli.progress import progress
from stepscope.ingest.errors import TraceError


@click.command()
@click.argument("src", type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path),
              help="The file to write; its extension chooses the format.")  # fmt: skip
@may_overwrite
@opens_traces
def convert(src: Path, out: Path, force: bool, open_trace: OpenTrace) -> None:
    """Convert SRC to the format that the extension of the output names.

    .trace is a directory of Parquet files, and holds everything. .pftrace (or .pftrace.gz) is
    Perfetto's own format, which https://ui.perfetto.dev opens: nested tracks, counters with units,
    and times in nanoseconds. .json (or .json.gz) is Chrome JSON, which chrome://tracing and many
    other viewers open as well.

    Perfetto's format and Chrome JSON hold the spans, counters and flows of a trace, and as slices
    what an engine recorded: steps, requests, core groups, decisions and collectives. SRC is any
    file or folder that `stepscope info` reads. Where nothing could be read from it, nothing is
    written and the command exits 3.
    """
    from stepscope.analyzers.check.coverage import UNREAD, recorded
    from stepscope.ingest.writers import writer_of

    writer = writer_of(out)
    refuse_existing(out, src, force=force)
    with progress() as report:
        trace = open_trace(src, report)
        if not recorded(trace):
            raise TraceError(
                UNREAD, where=str(src), todo="see what it says of itself: stepscope info"
            )
        report(f"writing {out.name}", 0, None)
        writer.write(trace, out)
    click.echo(f"wrote {out}", err=True)
