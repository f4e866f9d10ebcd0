"""`stepscope close`: finish the recording of an engine that died."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.progress import progress
from stepscope.app.printable import plain


@click.command()
@click.argument("traces", metavar="TRACES...", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.pass_context
def close(ctx: click.Context, traces: tuple[Path, ...]) -> None:
    """Finish recordings that their engine never closed.

    An engine that is killed leaves its last rows in a journal, which is large and has to be read
    each time that the trace is opened. This command writes them as Parquet and removes the journal.
    No row is lost. The trace says as before that it was not closed, and how many rows were
    recovered. A trace that is still being recorded is refused, and the others are closed.

    A folder in which an engine has recorded its starts (STEPSCOPE_TRACE) stands for all of them.
    """
    from stepscope.ingest.errors import StepscopeError
    from stepscope.ingest.recording.closing import Closed, close_recording

    def told(found: Closed) -> str:
        torn = (
            f", {found.discarded_bytes:,} bytes were no whole row" if found.discarded_bytes else ""
        )
        kept = f"; the journal stays: {plain(found.notes[0])}" if found.has_journal else ""
        rows = "row" if found.num_rows == 1 else "rows"
        return f"rank {found.writer}: {found.num_rows:,} {rows} recovered{torn}{kept}"

    codes = []
    for trace in (each for named in traces for each in _recordings(named)):
        try:
            with progress() as report:
                closed = close_recording(trace, report)
        except StepscopeError as error:
            click.echo(f"stepscope: {plain(str(error))}", err=True)
            codes.append(error.exit_code)
            continue
        said = [told(each) for each in closed] or ["nothing to close"]
        click.echo("\n".join(f"{plain(str(trace))}: {line}" for line in said))
    ctx.exit(codes[0] if codes else 0)


def _recordings(named: Path) -> list[Path]:
    """What is to be closed: a recording, or each that lies in a folder of starts."""
    from stepscope.ingest.recording.closing import is_recording

    if is_recording(named) or not named.is_dir():
        return [named]
    return sorted(filter(is_recording, named.iterdir())) or [named]
