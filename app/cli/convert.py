"""`stepscope convert`: write a trace in another format."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.ingest.errors import ConfigError


@click.command()
@click.argument("src", type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", required=True, type=click.Path(path_type=Path),
              help="Where to write; the ending chooses the format.")  # fmt: skip
@opens_traces
def convert(src: Path, out: Path, open_trace: OpenTrace) -> None:
    """Write SRC as another format, chosen by the ending of OUT.

    .trace is a directory of Parquet files; .json and .json.gz are Chrome JSON, which
    https://ui.perfetto.dev and chrome://tracing open.
    """
    from stepscope.ingest.writers.chrome import write_chrome

    wants_chrome = out.name.endswith((".json", ".json.gz"))
    if not wants_chrome and out.suffix != ".trace":
        raise ConfigError(
            "no format has this ending", where=str(out), todo="use .trace, .json or .json.gz"
        )
    with progress() as report:
        trace = open_trace(src, report)
        report(f"writing {out.name}", 0, None)
        if wants_chrome:
            write_chrome(trace, out)
        else:
            trace.save(out)
    click.echo(f"wrote {out}", err=True)
