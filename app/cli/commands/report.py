"""`stepscope report`: one page to send on."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import refuse_existing_file, written_whole
from stepscope.app.cli.progress import progress


@click.command()
@click.argument("traces", metavar="TRACE [TRACE]", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("-o", "--output", "out", required=True, metavar="FILE.html",
              type=click.Path(path_type=Path), help="The page to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@opens_traces
def report(traces: tuple[Path, ...], out: Path, force: bool, open_trace: OpenTrace) -> None:
    """Write what is in TRACE, and what was found in it, as one page to send on.

    The page holds an overview, the findings with their evidence and pictures, where the time went,
    and a timeline to move about in: the whole run, span by span where there are few, and finer
    windows around as many findings as there is room for. Of two traces it also says where they
    diverge, as `stepscope diff` does.

    It is one file of at most 5 MB that opens from a disk in any browser of today. It fetches
    nothing and tells nobody that it was opened. Whoever has it can read the names, the times and
    the settings that the traces hold.

    The command exits 0 however much was found, and 3 where a trace cannot be read.

    Examples:

    \b
      stepscope report before.trace -o before.html
      stepscope report before.trace after.trace -o fixed.html
    """
    from stepscope.analyzers.check.run import check
    from stepscope.app.web.loaded import LoadedTrace
    from stepscope.app.web.report.document import document

    if len(traces) > 2:
        raise click.UsageError("a report is of one trace, or of two and their difference.")
    refuse_existing_file(out, *traces, force=force)
    with progress() as told:
        opened = [open_trace(path, told) for path in traces]
        page = document([LoadedTrace(each, check(each, progress=told)) for each in opened], told)
        written_whole(out, page)
    click.echo(f"wrote {out}", err=True)
