"""`stepscope otel`: requests as spans and findings as metrics, for whatever takes OpenTelemetry."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.analyzers.findings.wording import times
from stepscope.app.cli.given import Duration
from stepscope.app.cli.opening import OpenTrace, opens_traces
from stepscope.app.cli.output import refuse_existing_file
from stepscope.app.cli.progress import Report, progress
from stepscope.app.printable import plain
from stepscope.ingest.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from stepscope.app.otel.telling import Told

KINDS = ("spans", "metrics")
ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--endpoint", metavar="URL",
              help="Send it there, to a collector that takes OTLP over HTTP.")  # fmt: skip
@click.option("-o", "--output", "out", metavar="FILE", type=click.Path(path_type=Path),
              help="Write it there: .json or .jsonl, an object a line, or .gz of it.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--only", type=click.Choice(KINDS), help="Leave the other out.")
@click.option("--began", metavar="TIME",
              help="When a run began whose clock has no date, as a simulation's: now, or a time "
                   "as 2026-11-26T16:00:00.  [default: 1970-01-02]")  # fmt: skip
@click.option("--timeout", type=Duration(), metavar="SECONDS",
              help="Give up on a request after so long, tries and all.  [default: 10]")  # fmt: skip
@opens_traces
def otel(
    trace: Path, endpoint: str | None, out: Path | None, force: bool, only: str | None,
    began: str | None, timeout: float | None, open_trace: OpenTrace,
) -> None:  # fmt: skip
    """Tell OpenTelemetry of TRACE: its requests as spans, its findings as metrics.

    Each request is a span with all that happened to it, and its phases are spans within that:
    queue, prefill, decode, preempted. Names of attributes are those of the conventions for
    generative AI (gen_ai.*); what these have no name for begins with stepscope. The metric
    stepscope.findings counts what each rule found, by severity.

    Nothing is sent unless --endpoint says where. A file is read again by every command that opens
    a trace, and gives the same requests, phases and times.

    Examples:

    \b
      stepscope otel run.trace -o run.otlp.json
      stepscope otel run.trace --endpoint http://127.0.0.1:4318
      stepscope otel run.trace --endpoint http://127.0.0.1:4318 --only spans --began now
    """
    from stepscope.app.otel.endpoint import endpoint_of
    from stepscope.app.otel.telling import send, write

    if (endpoint is None) == (out is None):
        raise click.UsageError("name where it goes: --endpoint URL, or -o FILE.")
    if timeout is not None and endpoint is None:
        raise click.UsageError("--timeout is of --endpoint.")
    where = None if endpoint is None else endpoint_of(endpoint)
    began_ns = None if began is None else _time(began)
    if out is not None:
        if not out.name.endswith(ENDINGS):
            raise ConfigError("OTLP is not written there", where=str(out),
                              todo=f"name a file that ends in {', '.join(ENDINGS)}")  # fmt: skip
        refuse_existing_file(out, trace, force=force)
    with progress() as report:
        told = _told(trace, only, began_ns, open_trace, report)
        report("writing" if where is None else "sending", 0, None)
        if where is not None:
            num_spans, into = send(told, where, timeout), f"sent to {where.base}"
        else:
            assert out is not None
            num_spans, into = write(told, out), f"wrote {out}"
    _say(told, num_spans, into)


def _told(
    path: Path, only: str | None, began_ns: int | None, open_trace: OpenTrace, report: Report
) -> Told:
    from stepscope.analyzers.check.coverage import UNREAD, recorded
    from stepscope.analyzers.check.run import check
    from stepscope.app.check_config import load_config
    from stepscope.app.otel.laid_out import laid_out
    from stepscope.app.otel.telling import SPANS, Told
    from stepscope.app.own_version import own_version

    rules = load_config().rules()
    opened = open_trace(path, report)
    if not recorded(opened):
        raise TraceError(UNREAD, where=str(path), todo="see what it says of itself: stepscope info")
    told = Told(opened, laid_out(opened, began_ns), (only,) if only else KINDS,
                lambda trace: check(trace, rules, progress=report), own_version())  # fmt: skip
    if only == SPANS and told.requests.is_empty():
        raise ConfigError("it names no request, and spans are of requests", where=str(path),
                          todo="send its findings: --only metrics")  # fmt: skip
    return told


def _say(told: Told, num_spans: int, into: str) -> None:
    from stepscope.app.otel.telling import METRICS, SPANS

    parts = []
    if SPANS in told.kinds:
        requests = len(told.requests)
        parts.append(f"{times(num_spans, 'span')} of {times(requests, 'request')}"
                     if requests else "no spans, as it names no request")  # fmt: skip
    if METRICS in told.kinds:
        parts.append("its findings")
    click.echo(plain(f"{into}: {' and '.join(parts)}"), err=True)
    if told.laid.num_left_out and SPANS in told.kinds:
        rows = times(told.laid.num_left_out, "row")
        what = f"{rows} of lifecycle left out: no request, or no time"
        click.echo(what, err=True)


def _time(text: str) -> int:
    """Nanoseconds since 1970 of a time; without a zone it is UTC."""
    if text == "now":
        return int(datetime.now(UTC).timestamp()) * 10**9
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.year < 1970 or time.year > 2100:
        raise ConfigError(f"{text!r} is no time", todo="as now, or 2026-11-26T16:00:00")
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return int(zoned.timestamp()) * 10**9 + zoned.microsecond * 1_000
