"""What a trace is, in a few facts: the same for the command line, the terminal and the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.present.blocks import Block, Heading, Items
from stepscope.app.units import length
from stepscope.ingest.display import facts, notes
from stepscope.ingest.summary import extents
from stepscope.ingest.trace import Trace


def identity(trace: Trace) -> Iterator[tuple[str, str]]:
    """Who recorded it, on which clock, of how many ranks, which run, and how long it took."""
    told = facts(trace.manifest, trace.steps)
    yield from (fact for fact in told if fact[0] not in ("steps", "sources"))
    yield from took(trace)


def told_of_it(trace: Trace) -> Iterator[Block]:
    """What to know before it is believed: how it ended, what was lost, how a profile fits it."""
    if told := notes(trace.manifest):
        yield Heading("notes")
        yield Items(tuple(told))


def how_many(findings: Iterable[Finding]) -> str:
    """How many findings there are, and how often they occurred in all where that is more."""
    counts = [found.count for found in findings]
    often = f" ×{sum(counts):,}" if sum(counts) > len(counts) else ""
    return f"{len(counts):,}{often}"


def took(trace: Trace) -> Iterator[tuple[str, str]]:
    """How long it took, and when it began where the clock says so."""
    times = extents(trace).values()
    if not times or not trace.manifest.clock.has_times:
        return
    began, ended = min(first for first, _ in times), max(last for _, last in times)
    moment = date(trace, began)
    yield "time", length(ended - began) + (f" from {moment}" if moment else "")


def date(trace: Trace, ns: int) -> str:
    """A time of the trace as a date; empty where its clock does not tell one."""
    clock = trace.manifest.clock
    since_1970 = ns + clock.epoch_ns
    if (clock.kind != "wall" and not clock.epoch_ns) or not 0 < since_1970 < 1 << 62:
        return ""
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=since_1970 // 1000)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
