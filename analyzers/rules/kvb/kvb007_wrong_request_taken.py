"""wrong-request-taken: the request that left the queue is not the one that was admitted.

## What it finds
Admissions of requests that were not waiting: an `admit` or `resume` while, by the events before it,
the request was running already. It was taken from the queue once and is still in it, so another one
was taken out in its place, who is in no queue any more. A request that was preempted in the step of
the first admission, and to which nothing happened since, is named: it is the one that is lost.

## Why it hurts
One request runs twice and is computed twice; another one is never looked at again, and its client
waits until it hangs up. Counts agree all the while: as many left the queue as came in.

## Example
    req-17 was admitted again while it ran: first in step 41; req-30, preempted in step 40, was lost

## How to fix
Take out the request that was admitted, by identity, not whoever stands at the front by then: a
preemption in between puts its victim there. Assert that what is removed is what was admitted.

## References
mistral.rs pull request 2034: the victim of a preemption was popped from the front of the queue in
place of the request that it was preempted for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.requests import ENTERS, LEAVES, REQUEST, events, has_histories
from stepscope.ingest.trace import Trace

FIX = "remove from the queue the request that was admitted, by identity, not whoever is in front"


@dataclass(frozen=True, slots=True)
class WrongRequestTaken:
    """A request was admitted that was not waiting."""

    code: ClassVar[str] = "KVB007"
    name: ClassVar[str] = "wrong-request-taken"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known when requests arrived, and what became of any."""
        return has_histories(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per request that was admitted while it ran, in order of time."""
        twice = _admitted_while_running(trace).join(
            _lost(trace), on=["rank", "request"], how="left"
        )
        rows = twice.sort("ts_ns", *REQUEST).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        lost = f"; {row['lost']}, preempted for it, was lost" if row["lost"] else ""
        first = f": first in step {row['step']}" if row["step"] is not None else ""
        message = (
            f"{row['request']} was admitted {times(row['count'], 'time')} while it ran{first}{lost}"
        )
        evidence: Evidence = {
            "times admitted while running": row["count"],
            "lost": row["lost"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _admitted_while_running(trace: Trace) -> pl.LazyFrame:
    """Requests that left the queue more often than they had come to it, and when they did."""
    event = pl.col("event")
    change = pl.when(event.is_in(ENTERS)).then(1).otherwise(-1)
    lowest = pl.min_horizontal(pl.col("in_queue").cum_min().over(REQUEST), 0)
    came = (event == "arrive").any().over(REQUEST)
    return (
        events(trace)
        .filter(event.is_in([*ENTERS, *LEAVES]), came)
        .group_by(*REQUEST, "ts_ns")
        .agg(pl.col("step").min(), change=change.sum())
        .sort(*REQUEST, "ts_ns")
        .with_columns(in_queue=pl.col("change").cum_sum().over(REQUEST))
        .with_columns(lowest=lowest)
        .with_columns(extra=pl.col("lowest").shift(1).over(REQUEST).fill_null(0) - lowest)
        .filter(pl.col("extra") > 0)
        .group_by(REQUEST)
        .agg(
            pl.col("step", "ts_ns").min(),
            end_ns=pl.col("ts_ns").max(),
            count=pl.col("extra").sum(),
        )
    )


def _lost(trace: Trace) -> pl.LazyFrame:
    """Who was preempted for a request, and neither came back nor ended by itself since."""
    event = pl.col("event")
    preempted_ns = pl.col("ts_ns").filter(event == "preempt").max()
    heard_of_ns = (
        pl.col("ts_ns").filter(event.is_in(["admit", "resume", "finish", "reject", "error"])).max()
    )
    by = (
        pl.col("by_request")
        .filter(event == "preempt")
        .sort_by(
            pl.col("ts_ns").filter(event == "preempt"),
            pl.col("by_request").filter(event == "preempt"),
        )
    )
    return (
        events(trace)
        .group_by(REQUEST)
        .agg(by=by.last(), preempted_ns=preempted_ns, heard_of_ns=heard_of_ns)
        .filter(pl.col("preempted_ns") >= pl.col("heard_of_ns").fill_null(pl.col("preempted_ns")))
        .group_by("rank", pl.col("by").alias("by_request"))
        .agg(lost=pl.col("request").min())
        .rename({"by_request": "request"})
    )
