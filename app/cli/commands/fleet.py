"""`stepscope fleet`: thousands of traces into an archive that is asked by SQL."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.app.check_config import load_config
from stepscope.app.cli.complaints import complain
from stepscope.app.cli.given import Duration
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.progress import progress
from stepscope.app.printable import plain
from stepscope.ingest.errors import TraceError

if TYPE_CHECKING:
    from stepscope.analyzers.fleet.importing import Tally
    from stepscope.analyzers.fleet.worker_pool import Pool

COMPACT = "compact"
MOST_NAMED = 20
_DAYS = re.compile(r"(\d{1,5})d")


def _days(_ctx: click.Context, _param: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    if not (found := _DAYS.fullmatch(text.strip())):
        raise click.BadParameter(f"{text!r} is no number of days, like 30d")
    return int(found[1])


@click.command()
@click.argument("places", metavar="PATTERN... | compact ARCHIVE", nargs=-1, required=True)
@click.option("--to", "archive", metavar="ARCHIVE", type=click.Path(path_type=Path),
              help="The folder of the archive; it is made where it is missing.")  # fmt: skip
@click.option("--workers", metavar="N", type=click.IntRange(1, 1_024),
              help="Read by so many processes.  [default: one for each core]")  # fmt: skip
@click.option("--scheduler", metavar="ADDRESS",
              help="Let the workers of this Dask scheduler read, such as tls://10.0.0.7:8786; "
                   "each has to see the files under the same paths.")  # fmt: skip
@click.option("--insecure", is_flag=True,
              help="Also speak to a scheduler of another machine without TLS.")  # fmt: skip
@click.option("--timeout", "seconds", type=Duration(), metavar="SECONDS", default=900.0,
              show_default=True, help="Give a file up that takes longer.")  # fmt: skip
@click.option("--again", is_flag=True,
              help="Also try what could not be read before and has not changed.")  # fmt: skip
@click.option("--keep", "keep_days", metavar="DAYSd", callback=_days,
              help="With compact: let go of what came longer ago, such as 30d.")  # fmt: skip
@opens_traces
def fleet(  # noqa: PLR0913, PLR0917 - one per option
    places: tuple[str, ...], archive: Path | None, workers: int | None, scheduler: str | None,
    insecure: bool, seconds: float, again: bool, keep_days: int | None, open_trace: OpenTrace,
) -> int:  # fmt: skip
    """Import, check and sum up thousands of traces, and ask the archive with `stepscope sql`.

    PATTERN is a file, a folder, a pattern in quotes, or a URL that fsspec opens (s3://bucket/runs).
    A folder of rank files is one trace, of which the rules get the columns that they look at; of
    any other folder all that is below is looked at. Rules are those of stepscope.toml.

    A trace that the archive has is left alone, whatever its name, unless its content changed; a run
    that was ended goes on where it was. What cannot be read is named, a row of the table failures,
    and hinders nothing; the command exits 3 then.

    `fleet compact ARCHIVE` merges the small files that many runs leave, and with --keep lets go of
    what came longer ago; what was imported is remembered all the same.

    Examples:

    \b
      stepscope fleet runs/ --to nightly.archive --workers 8
      stepscope sql nightly.archive "select trace, errors from traces where errors > 0"
      stepscope fleet compact nightly.archive --keep 30d
    """
    if places[0] == COMPACT:
        return _compact(places[1:], archive, keep_days)
    if keep_days is not None:
        raise click.UsageError("--keep is of fleet compact ARCHIVE.")
    if archive is None:
        raise click.UsageError("Missing option '--to'.")
    with progress() as report:
        from stepscope.analyzers.fleet.archive.opened import digest_of, opened
        from stepscope.analyzers.fleet.found_traces import found_traces
        from stepscope.analyzers.fleet.importing import Importing
        from stepscope.analyzers.fleet.messages import Settings

        settings = Settings.of(load_config().rules(), open_trace.limits)
        report("looking for traces", 0, None)
        found = found_traces(places)
        with (
            _pools(workers, scheduler, seconds, insecure=insecure) as (pool, joining),
            opened(archive, new=True) as at_hand,
        ):
            tally = Importing(at_hand, settings, pool, joining, report).run(found, again=again)
    _say(tally, archive, digest_of(archive))
    return TraceError.exit_code if tally.failed else 0


@contextmanager
def _pools(
    workers: int | None, scheduler: str | None, seconds: float, *, insecure: bool
) -> Iterator[tuple[Pool, Pool]]:
    """Who reads files, and who checks what was joined of them, which is always done here."""
    from stepscope.analyzers.fleet.worker_pool import WorkerPool

    own = WorkerPool(workers or os.cpu_count() or 1, seconds)
    pools: list[Pool] = [own]
    try:
        if scheduler is not None:
            from stepscope.analyzers.fleet.dask_pool import DaskPool, check_address

            check_address(scheduler, insecure=insecure)
            pools.append(DaskPool(scheduler, seconds))
        yield pools[-1], own
    finally:
        for pool in pools:
            pool.close()


def _compact(words: tuple[str, ...], archive: Path | None, keep_days: int | None) -> int:
    from stepscope.analyzers.fleet.archive.merging_files import cared_for
    from stepscope.analyzers.fleet.archive.opened import opened, today

    if len(words) != 1 or archive is not None:
        raise click.UsageError("it is written: stepscope fleet compact ARCHIVE [--keep 30d]")
    folder = Path(words[0])
    with opened(folder, new=False) as at_hand:
        cared = cared_for(at_hand, keep_days, today())
    gone = f", {_times(cared.num_gone, 'partition')} gone" if keep_days is not None else ""
    files = f"{_times(cared.num_before, 'file')} before, {cared.num_files:,} now"
    click.echo(f"{plain(str(folder))}: {files}{gone}")
    return 0


def _say(tally: Tally, archive: Path, digest: str) -> None:
    for path, why in tally.failed[:MOST_NAMED]:
        complain(f"{path}: {why}")
    if (more := len(tally.failed) - MOST_NAMED) > 0:
        complain(f"{more:,} more cannot be read: ask failures for path and reason")
    traces, files = _times(tally.num_traces, "trace"), _times(tally.num_files, "file")
    known = f", {tally.num_known:,} known before" if tally.num_known else ""
    copies = f", {_times(tally.num_copies, 'copy')} of another" if tally.num_copies else ""
    click.echo(f"{plain(str(archive))}: {files} of {traces}{known}{copies}")
    click.echo(f"checked     {tally.num_checked:,}")
    click.echo(f"unreadable  {_times(len(tally.failed), 'file')}")
    if tally.num_deaths:
        click.echo(f"workers     {_times(tally.num_deaths, 'death')}, and what they did was redone")
    click.echo(f"read        {tally.read_bytes:,} bytes of files")
    click.echo(f"sent        {tally.sent_bytes:,} bytes of columns, for rules over several ranks")
    click.echo(f"digest      {digest}")


def _times(number: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"
