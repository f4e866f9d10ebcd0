"""`stepscope listen`: capture what engines publish while they run, and write it as a trace."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import click

from stepscope.analyzers.findings.wording import times
from stepscope.app.cli.given import Duration
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import may_overwrite, refuse_existing
from stepscope.app.printable import plain
from stepscope.ingest.errors import StepscopeError, TraceError, WriteError

if TYPE_CHECKING:
    from stepscope.ingest.limits import Limits
    from stepscope.ingest.live.subscriber import Heard

_SECONDS = Duration()


@click.command()
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option(
    "-o",
    "--output",
    "out",
    required=True,
    type=click.Path(path_type=Path),
    help="The file to write; its extension chooses the format, as with convert.",
)
@click.option("--seconds", type=_SECONDS, help="Stop after this many seconds.")
@click.option("--idle", type=_SECONDS, help="Stop when no message has come for this many seconds.")
@click.option("--wait", type=_SECONDS, default=30.0, show_default=True,
              help="Give up when no first message has come within this many seconds.")  # fmt: skip
@click.option("--remote", is_flag=True, help="Also accept addresses of other machines.")
@may_overwrite
@opens_traces
def listen(
    addresses: tuple[str, ...],
    out: Path,
    seconds: float | None,
    idle: float | None,
    wait: float,
    remote: bool,
    force: bool,
    open_trace: OpenTrace,
) -> None:
    """Capture what engines publish at ADDRESS over ZMQ, and write it as a trace.

    ADDRESS is tcp://127.0.0.1:PORT, where an engine publishes forward pass metrics (vLLM and
    SGLang with --forward-pass-metrics-port, and Dynamo; data-parallel rank N uses PORT + N) or KV
    cache events. Several addresses become one trace. The capture ends when all publishers are gone,
    on Ctrl-C or SIGTERM, when the terminal is closed, or as the options say. All messages received
    by then are written, and lost ones are counted.
    """
    from stepscope.ingest.live.captures import Captures
    from stepscope.ingest.live.subscriber import Patience, check_addresses
    from stepscope.ingest.live.subscriber import listen as heard_at
    from stepscope.ingest.writers import writer_of

    check_addresses(addresses, remote=remote)
    writer = writer_of(out)
    refuse_existing(out, force=force)
    try:
        with _stopped_by_signals() as is_stopped:
            folder = _folder(out)
            with Captures(folder) as captures:
                patience = Patience(seconds, idle, wait)
                heard = heard_at(
                    addresses, captures.file_of, patience, is_stopped, open_trace.limits
                )
        if not heard.num_messages:
            why = f"no message came{_left_out(heard, open_trace.limits)}: {heard.ended}"
            raise TraceError(why, where=" ".join(addresses))
        about = _about(heard, open_trace.limits)
        trace = captures.trace(out.name, about, open_trace.limits)
        writer.write(trace, out)
    except StepscopeError as error:
        raise _with_what_was_kept(error, folder) from error
    shutil.rmtree(folder, ignore_errors=True)
    click.echo(plain(f"wrote {out}: {about}"), err=True)


def _folder(out: Path) -> Path:
    """Where messages are put as they come: beside what is to be written."""
    try:
        return Path(mkdtemp(prefix=f".{out.name}.", suffix=".captured", dir=out.parent))
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror}", where=str(out)) from None


def _about(heard: Heard, limits: Limits) -> str:
    left_out = _left_out(heard, limits)
    return f"{times(heard.num_messages, 'message')} came{left_out}, until {heard.ended}"


def _left_out(heard: Heard, limits: Limits) -> str:
    """What came and was not captured."""
    from stepscope.ingest.limits import raised_by

    malformed, too_large = heard.num_malformed, heard.num_too_large
    text = f", {malformed:,} of more than three frames left out" if malformed else ""
    if too_large:
        text += f", {too_large:,} of more than {limits.message:,} bytes left out"
        text += f" ({raised_by('message')})"
    return text


def _with_what_was_kept(error: StepscopeError, folder: Path) -> StepscopeError:
    """The error, and where the messages are that could not be made a trace of."""
    if any(file.stat().st_size for file in folder.iterdir()):
        return type(error)(error.what, where=error.where, todo=f"what came is in {folder}")
    shutil.rmtree(folder, ignore_errors=True)
    return error


@contextmanager
def _stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Let Ctrl-C, SIGTERM and SIGHUP end the capture, not the command."""
    caught: list[int] = []
    named = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    numbers = [number for number in named if signal.getsignal(number) is not signal.SIG_IGN]
    before = {
        number: signal.signal(number, lambda got, _: caught.append(got)) for number in numbers
    }
    try:
        yield lambda: bool(caught)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
