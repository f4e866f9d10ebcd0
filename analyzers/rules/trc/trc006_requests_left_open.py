"""requests-left-open: a recording was closed while requests were still open.

## What it finds
Requests that had arrived, and of which no end was recorded (finish, reject, abort, error) when the
recording was closed. They are told apart: those in the batch of the last step, those that waited,
and those that ran and were in no batch; and it is told when the last step never ended. An engine
that never records how requests end has left open only those that were in its last batch or waited.

A recording that was not closed is TRC001's. Of a file that another program wrote it is not known
whether it goes on elsewhere, so the rule is not applicable to it, nor where rows may be missing.

## Why it hurts
That is how it looks when an engine dies: what closes the recording on the way out closes it, and
the requests never hear of anything. Or the recording was stopped while the engine went on: then
rules that look for what never happened cannot tell "never" from "not yet", and averages are of
those that were short enough.

## Example
    20 of 20 requests were still open when the recording was closed: 3 in the batch of step 1, which
    never ended, and 17 waiting

## How to fix
If the engine died, look at its last step and at the log of that time. If it was stopped on purpose,
drain it before the recording is closed, or abort what is open and record that.

## References
vLLM's `EngineDeadError`: the core process is gone, and every open request gets it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import last_steps
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.partial import without_durations
from stepscope.analyzers.views.requests import (
    ENDS,
    ENTERS,
    LEAVES,
    REQUEST,
    events,
    has_arrivals,
    has_histories,
    requests,
)
from stepscope.ingest.trace import Trace

FIX = (
    "if the engine died, look at its last step and at the log of that time; "
    "if it was stopped, drain it before the recording is closed"
)
NAMED = 5


@dataclass(frozen=True, slots=True)
class RequestsLeftOpen:
    """At least `at_least` requests had not ended when the recording was closed."""

    code: ClassVar[str] = "TRC006"
    name: ClassVar[str] = "requests-left-open"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request",)

    at_least: int = 1
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a run was recorded, whole, from when requests came until it was closed."""
        was_recorded = trace.manifest.is_recording and trace.manifest.is_whole("lifecycle")
        is_run = has_histories(trace) or (has_arrivals(trace) and trace.has("steps"))
        return was_recorded and is_run

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of requests, placed at its last step."""
        told = any_row(events(trace).filter(pl.col("event").is_in(ENDS)))
        is_sure = pl.lit(told) | (pl.col("where") != "running")
        of_rank = requests(trace).group_by("rank").agg(num_arrived=pl.len())
        rows = (
            _open(trace)
            .filter(is_sure)
            .group_by("rank")
            .agg(
                pl.col("request").sort_by("arrive_ns", "request").head(NAMED),
                pl.col("trace_end_ns").first(),
                *((pl.col("where") == where).sum().alias(where) for where in _WHERE),
                count=pl.len(),
            )
            .filter(pl.col("count") >= self.at_least)
            .join(of_rank, on="rank", how="left")
            .join(last_steps(trace), on="rank", how="left")
            .with_columns(ts_ns=pl.coalesce("ts_ns", "trace_end_ns"), end_ns=pl.col("trace_end_ns"))
            .sort("rank")
        )
        if not trace.has("steps") or any(without_durations(trace)):
            rows = rows.with_columns(has_no_end=pl.lit(value=False))
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        were = "was" if row["num_arrived"] == 1 else "were"
        message = (
            f"{row['count']:,} of {times(row['num_arrived'], 'request')} {were} still open when "
            f"the recording was closed: {_where(row)}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            "requests that came": row["num_arrived"],
            "in the last batch": row["scheduled"],
            "waiting": row["waiting"],
            "running, in no batch": row["running"],
            "last step": row["step"],
            "the oldest": ", ".join(row["request"]),
        }
        at = {**row, "request": row["request"][0]}
        return finding(self, message, FIX, at=at, evidence=evidence, count=row["count"])


_WHERE = ("scheduled", "waiting", "running")


def _where(row: Mapping[str, Any]) -> str:
    """Where they were: `3 in the batch of step 1, which never ended, and 17 waiting`."""
    never = ", which never ended" if row["has_no_end"] else ""
    told = {
        "scheduled": f"in the batch of step {row['step']}{never}",
        "waiting": "waiting",
        "running": "running and in no batch",
    }
    parts = [f"{row[where]:,} {told[where]}" for where in _WHERE if row[where]]
    return ", and ".join((", ".join(parts[:-1]), parts[-1])) if len(parts) > 1 else parts[0]


def _open(trace: Trace) -> pl.LazyFrame:
    """`requests` without an end, and where they were: in a last batch, waiting, or running."""
    event = pl.col("event")
    change = pl.when(event.is_in(ENTERS)).then(1).when(event.is_in(LEAVES)).then(-1).otherwise(0)
    queued = events(trace).group_by(REQUEST).agg(num_waits=change.sum())
    last = last_steps(trace).select("rank", since_ns="ts_ns")
    scheduled = trace.batch_rows.select(*REQUEST, "ts_ns").join(last, on="rank")
    scheduled = scheduled.filter(pl.col("ts_ns") >= pl.col("since_ns"))
    scheduled = scheduled.select(REQUEST).drop_nulls().unique().with_columns(is_scheduled=True)
    where = (
        pl.when(pl.col("is_scheduled"))
        .then(pl.lit("scheduled"))
        .when(pl.col("num_waits") > 0)
        .then(pl.lit("waiting"))
        .otherwise(pl.lit("running"))
    )
    return (
        requests(trace)
        .filter(pl.col("outcome").is_null())
        .join(queued, on=REQUEST, how="left")
        .join(scheduled, on=REQUEST, how="left")
        .with_columns(where=where)
    )
