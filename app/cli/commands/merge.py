"""`stepscope merge`: put a profile's kernels onto the steps of a recording of the same run."""

from __future__ import annotations

from pathlib import Path

import click

from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import may_overwrite, refuse_existing
from stepscope.app.cli.progress import progress
from stepscope.app.printable import plain


@click.command()
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("profile", metavar="PROFILE", type=click.Path(path_type=Path))
@click.option("-o", "--output", "out", type=click.Path(path_type=Path),
              help="The file to write; its extension chooses the format, as with convert.  "
              "[default: RUN with -merged in its name, beside it]")  # fmt: skip
@may_overwrite
@opens_traces
def merge(run: Path, profile: Path, out: Path | None, force: bool, open_trace: OpenTrace) -> None:
    """Merge the kernels of PROFILE into the steps of RUN, as one trace.

    RUN is a recording (of vLLM with STEPSCOPE_TRACE, or of an engine with a Recorder). PROFILE is
    what torch.profiler wrote for the same process during that run: a file, or a folder with one
    file for each rank. Both have Unix time. Each step tag of the profile is paired with a recorded
    step by their order and their numbers of tokens. The command prints how far tags lie outside
    their steps, and refuses a profile that does not fit. Each step of the result has its
    decisions, its queue and its kernels; the steps that were inferred from tags are dropped.

    To profile vLLM while it is recorded, from POST /start_profile to POST /stop_profile:

    \b
      STEPSCOPE_TRACE=runs vllm serve MODEL \\
        --profiler-config '{"profiler": "torch", "torch_profiler_dir": "/data/profiles"}'
      stepscope merge runs/START.trace /data/profiles -o both.trace
    """
    from stepscope.ingest.merging.merge import merge as merged_with
    from stepscope.ingest.writers import writer_of

    target = out or run.with_name(f"{run.name.removesuffix('.trace')}-merged.trace")
    writer = writer_of(target)
    refuse_existing(target, run, profile, force=force)
    with progress() as report:
        recorded, profiled = open_trace(run, report), open_trace(profile, report)
        report("pairing steps", 0, None)
        trace, found = merged_with(recorded, profiled)
        report(f"writing {target.name}", 0, None)
        writer.write(trace, target)
    for line in (*(each.said() for each in found), f"wrote {target}"):
        click.echo(plain(line), err=True)
