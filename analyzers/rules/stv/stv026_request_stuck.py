"""request-stuck: a request was admitted and nothing of it was computed, while later ones finished.

## What it finds
Requests that were admitted, did not end, and are in no batch and have no token since. Meanwhile at
least `min_others` requests were admitted and finished. It lasts for `min_ns` and for `min_ratio`
times what the slowest of these took from admission to end. The second limit is relative to the
engine: a slow one serves the others slowly, too. The first is there because a log may report the
first chunk of a prompt only when it is computed.

All such requests of a rank are one finding, placed at the one that is stuck for longest.

It does not apply where the scheduler's decisions are recorded: these say step by step why a request
is left out (STV001, STV010). A request that was in a batch is not judged: between two reports of a
long decode there may be minutes.

## Why it hurts
The slot and the KV cache of the request are lost to the others, and its client waits for an answer
that never comes. The server looks healthy: it serves everybody else.

## Example
    task 1 was admitted 447.0 s before the end and is in no batch, while 10 requests that were
    admitted later finished, each within 40.0 s

## How to fix
See what the slot waits for (of llama.cpp, `GET /slots`), and cancel the request. A slot that was
assigned and is never scheduled is a bug of the server: report it with the lines about the slot.

## References
llama.cpp issue 27185 (a slot processes a task that is never dispatched).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.batches import rows
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.analyzers.views.requests import REQUEST, ends, events, last_moment
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

ADMITTED = ("admit", "resume")
FIX = (
    "see what its slot waits for (of llama.cpp, GET /slots), and cancel it: until then its slot "
    "and its KV cache are lost to the others"
)


@dataclass(frozen=True, slots=True)
class RequestStuck:
    """An admitted request is in no batch, while `min_others` later ones were served."""

    code: ClassVar[str] = "STV026"
    name: ClassVar[str] = "request-stuck"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request", "batch_rows.request", CLOCK)

    min_ns: int = 60 * SECOND
    min_ratio: float = 3.0
    min_others: int = 3
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether requests were admitted and ended, and no decision of a step is recorded."""
        event = events(trace).select("event")
        is_served = any_row(event.filter(pl.col("event") == "finish"))
        is_admitted = any_row(event.filter(pl.col("event") == "admit"))
        return is_served and is_admitted and not trace.has("decisions")

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, at the request that is stuck for longest."""
        others = _served(trace)
        stuck = (
            _running(trace)
            .join(others, on="rank")
            .filter(pl.col("admitted_ns") >= pl.col("ts_ns"))
            .group_by(*REQUEST, "step", "ts_ns", "end_ns")
            .agg(num_others=pl.len(), slowest_ns=pl.col("took_ns").max())
            .with_columns(lasted_ns=pl.col("end_ns") - pl.col("ts_ns"))
            .filter(
                pl.col("num_others") >= self.min_others,
                pl.col("lasted_ns") >= self.min_ns,
                pl.col("lasted_ns") >= self.min_ratio * pl.col("slowest_ns"),
            )
        )
        longest = (
            stuck.sort("rank", -pl.col("lasted_ns"), "request")
            .group_by("rank", maintain_order=True)
            .agg(pl.all().first(), count=pl.len())
        )
        return each(self, longest.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        more = row["count"] - 1
        others = f"{times(row['num_others'], 'request')} that were admitted later finished"
        message = (
            f"{row['request']} was admitted {duration(row['lasted_ns'])} before the end and is in "
            f"no batch, while {others}, each within {duration(row['slowest_ns'])}"
            f"{f'; {more:,} more are stuck like it' if more else ''}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            "lasted_ns": row["lasted_ns"],
            "later ones that finished": row["num_others"],
            "the slowest of them_ns": row["slowest_ns"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _running(trace: Trace) -> pl.LazyFrame:
    """Requests that were admitted and nothing more: rank, request, step, ts_ns, end_ns."""
    event = events(trace).join(ends(trace), on=REQUEST, how="anti")
    last = event.sort("ts_ns", maintain_order=True).group_by(REQUEST).agg(
        pl.col("event", "step", "ts_ns").last()
    )  # fmt: skip
    in_batches = rows(trace).group_by(REQUEST).agg(batch_ns=pl.col("ts_ns").max())
    is_later = (pl.col("batch_ns") >= pl.col("ts_ns")).fill_null(value=False)
    return (
        last.filter(pl.col("event").is_in(ADMITTED))
        .join(in_batches, on=REQUEST, how="left")
        .filter(~is_later)
        .join(last_moment(trace), on="rank")
        .select(*REQUEST, "step", "ts_ns", end_ns="trace_end_ns")
    )


def _served(trace: Trace) -> pl.LazyFrame:
    """Requests that finished: rank, admitted_ns, took_ns (from their first admission)."""
    admitted = (
        events(trace)
        .filter(pl.col("event") == "admit")
        .group_by(REQUEST)
        .agg(admitted_ns=pl.col("ts_ns").min())
    )
    finished = ends(trace).filter(pl.col("outcome") == "finish")
    return finished.join(admitted, on=REQUEST).select(
        "rank", "admitted_ns", took_ns=pl.col("ended_ns") - pl.col("admitted_ns")
    )
