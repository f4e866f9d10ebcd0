"""Who waited longest, for what, and why each still waited at the end of its last wait."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.causes import CAUSES, PARKED, QUEUE, Cause
from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.why import Chain, why
from stepscope.app.debug.why.last_wait import last_wait
from stepscope.app.present.blocks import AtRequest, Table
from stepscope.app.units import stated
from stepscope.ingest.errors import StepscopeError
from stepscope.ingest.progress import Progress
from stepscope.ingest.trace import Trace

WAITS: tuple[Cause, ...] = tuple(
    cause for cause in CAUSES if cause.group in (QUEUE, PARKED, "preempted")
)
"""Causes of time in which a request was left out by the scheduler."""


@dataclass(frozen=True)
class Waited:
    """A request: how long it waited in all, mostly for what, and the root of its last wait.

    `latency_ns` is the time from its arrival to its end or the end of the trace; `root` is empty
    where `why` does not know.
    """

    rank: int
    request: str
    waited_ns: int
    latency_ns: int
    reason: str
    reason_ns: int
    ends: str
    root: str


@dataclass(frozen=True)
class LongestWaits:
    """The requests that waited longest, of the `num_waited` that waited, of all `num_requests`."""

    rows: tuple[Waited, ...]
    num_waited: int
    num_requests: int

    @property
    def summary(self) -> str:
        """How many waited, in one sentence."""
        if not self.num_requests:
            return "The trace names no requests, so it is not known who waited."
        if not self.num_waited:
            return f"None of {times(self.num_requests, 'request')} is known to have waited."
        listed = len(self.rows)
        longest = f"; the {listed:,} that waited longest:" if listed < self.num_waited else ":"
        return f"{self.num_waited:,} of {times(self.num_requests, 'request')} waited{longest}"

    @property
    def table(self) -> Table:
        """A row for each request, the longest wait first."""
        has_ranks = len({row.rank for row in self.rows}) > 1
        rows = tuple(
            (
                f"{row.rank}:{row.request}" if has_ranks else row.request, stated(row.waited_ns),
                f"{row.waited_ns / max(row.latency_ns, 1):.0%}",
                f"{row.reason} {row.reason_ns / max(row.waited_ns, 1):.0%}", row.root or None,
            )
            for row in self.rows
        )  # fmt: skip
        columns = ("request", "waited", "of its time", "mostly", "why it still waited at the end")
        leads = tuple(AtRequest(row.rank, row.request) for row in self.rows)
        return Table(columns, rows, to_right=("waited", "of its time"), leads=leads)

    def as_dict(self) -> dict[str, Any]:
        """The same for programs."""
        return asdict(self)


def longest_waits(
    trace: Trace, rank: int | None, most: int | None, report: Progress
) -> LongestWaits:
    """The `most` requests that waited longest, of a rank or of all of them."""
    report("adding up", 0, None)
    requests = blame(trace).requests.filter(pl.col("request").is_not_null())
    if rank is not None:
        requests = requests.filter(pl.col("rank") == rank)
    columns = [cause.column for cause in WAITS]
    waited = (
        requests.with_columns(
            waited_ns=pl.sum_horizontal(columns), reason_ns=pl.max_horizontal(columns)
        )
        .filter(pl.col("waited_ns") > 0)
        .sort("waited_ns", descending=True, maintain_order=True)
    )
    debugger = Debugger(trace)
    rows = []
    shown = waited.head(most) if most else waited
    for done, row in enumerate(shown.iter_rows(named=True)):
        report("following each wait to its root", done, len(shown))
        reason = next(cause for cause in WAITS if row[cause.column] == row["reason_ns"])
        chain = _last_chain(debugger, row["rank"], row["request"])
        ends, root = (chain.root.ends, chain.root.says) if chain else ("", "")
        rows.append(
            Waited(
                row["rank"], row["request"], row["waited_ns"], row["latency_ns"],
                reason.name, row["reason_ns"], ends, root,
            )
        )  # fmt: skip
    return LongestWaits(tuple(rows), len(waited), len(requests))


def _last_chain(debugger: Debugger, rank: int, request: str) -> Chain | None:
    try:
        session = debugger.session_of(rank)
        return why(session, request, last_wait(session, request))
    except StepscopeError:
        return None
