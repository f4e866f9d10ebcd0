"""The options of every command that opens traces: what is kept of reading them, and the limits."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stepscope.app.cli.given import given_twice
from stepscope.app.cli.progress import Report
from stepscope.ingest.limits import DEFAULTS, Limits, limits_of

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace


@dataclass(frozen=True, slots=True)
class OpenTrace:
    """Opens traces as the options say."""

    limits: Limits = DEFAULTS
    cached: bool = True

    def __call__(self, path: Path, report: Report | None = None) -> Trace:
        """Open a trace; raises `TraceError`."""
        from stepscope.app.units import one_has_a_clock
        from stepscope.ingest.trace import Trace

        trace = Trace.open(path, progress=report, limits=self.limits, cached=self.cached)
        one_has_a_clock(has_times=trace.manifest.clock.has_times)
        return trace


def opens_traces(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options, and what they say as its argument `open_trace`."""

    @functools.wraps(command)
    def with_opener(no_cache: bool, most: Limits, **arguments: Any) -> Any:
        from stepscope.app.units import of_one_trace

        with of_one_trace():
            return command(open_trace=OpenTrace(most, not no_cache), **arguments)

    said = ", ".join(f"{name} {_short(number)}" for name, number in asdict(DEFAULTS).items())
    with_max = click.option(
        "--max", "most", multiple=True, callback=_limits, metavar="NAME=N",
        help=f"Set a limit on what is read from a file; may be repeated.  [default: {said}]",
    )(with_opener)  # fmt: skip
    return click.option(
        "--no-cache", is_flag=True,
        help="Read the file without the cache, and do not add it; see `stepscope cache`.",
    )(with_max)  # fmt: skip


def _limits(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> Limits:
    if again := given_twice(text.partition("=")[0] for text in texts):
        raise click.BadParameter(f"{again} is given more than once")
    return limits_of(texts)


def _short(number: int) -> str:
    """Write a limit as one would type it: 64GiB, 4MiB, 4000000."""
    for power, unit in ((30, "GiB"), (20, "MiB")):
        if number % (1 << power) == 0:
            return f"{number >> power}{unit}"
    return str(number)
