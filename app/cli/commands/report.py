"""`stepscope report`: one page to send on."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.given import holds_slo
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import refuse_existing_file, written_whole
from stepscope.app.cli.progress import progress


@click.command()
@click.argument("traces", metavar="TRACE [TRACE]", nargs=-1, required=True,
                type=click.Path(path_type=Path))  # fmt: skip
@click.option("-o", "--output", "out", required=True, metavar="FILE.html",
              type=click.Path(path_type=Path), help="The page to write.")  # fmt: skip
@click.option("--flags/--no-flags", "with_flags", default=True, show_default=True,
              help="Show the flags that were put on TRACE, with their notes.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@holds_slo
@opens_traces
def report(
    traces: tuple[Path, ...],
    out: Path,
    with_flags: bool,
    force: bool,
    slo: str | None,
    open_trace: OpenTrace,
) -> None:
    """Write what is in TRACE, and what was found in it, as one page to send on.

    The page holds an overview, the findings with their evidence and pictures, where the time went,
    and a timeline to move about in: the whole run, span by span where there are few, and finer
    windows around as many findings as there is room for. Of two traces it also says where they
    diverge, as `stepscope diff` does. With --slo it says what became of that, as `blame` does.

    It is one file of at most 5 MB that opens from a disk in any browser of today. It fetches
    nothing and tells nobody that it was opened. Whoever has it can read the names, the times and
    the settings that the traces hold, and the notes of the flags that you put on them.

    The command exits 0 however much was found, and 3 where a trace cannot be read.

    Examples:

    \b
      stepscope report before.trace -o before.html
      stepscope report before.trace after.trace -o fixed.html
      stepscope report before.trace --slo ttft=500ms,tpot=50ms -o before.html
    """
    from stepscope.analyzers.check.run import check
    from stepscope.analyzers.summary.slo import slo_of
    from stepscope.app.kept.flags import Flags
    from stepscope.app.timeline.flags.flag_at import FlagsOnLanes
    from stepscope.app.web.loaded import LoadedTrace
    from stepscope.app.web.report.document import document

    if len(traces) > 2:
        raise click.UsageError("a report is of one trace, or of two and their difference.")
    asked = slo_of(slo) if slo is not None else None
    refuse_existing_file(out, *traces, force=force)
    with progress() as told:
        opened = [open_trace(path, told) for path in traces]
        loaded = [LoadedTrace(each, check(each, progress=told), asked) for each in opened]
        for each in () if with_flags else loaded:
            each.flags = FlagsOnLanes(Flags(None), each.timeline.lanes)
        page = document(loaded, told)
        written_whole(out, page)
    click.echo(f"wrote {out}", err=True)
