"""long-queue: requests spend most of their latency in the queue, by their events alone.

## What it finds
Requests that waited in the queue for at least `min_ns`, and for at least `min_share` of their
latency. The wait is the time from arrival to admission, and again from a requeue to the next
admission. Both limits have to be exceeded: a share alone is reached by any short answer that waits
for one step, and a time alone by a long generation for which a few seconds do not matter. Five
seconds are more than most services allow for the first token. A request that still waits at the
end of the trace, or that its client gave up while it waited, counts with the time until then. A
request without a recorded admission that was served does not: how long it waited is not known.

All such requests of a rank are one finding, placed at the one that waited longest, with how many
waited at the same time.

Spans of OpenTelemetry and similar traces say when requests arrived and were admitted, and not what
the engine did in between. Where batches, decisions or the load of each step are recorded, STV002,
STV006, STV009, STV010 and STV016 say what the requests waited for, and this rule does not apply.

## Why it hurts
The time in the queue is paid before the first token. It grows without end while requests arrive
faster than they are served, and neither the engine's throughput nor the time per output token
shows it.

## Example
    16 of 20 requests waited 30.0 s on average in the queue (at most 30.0 s), 89.6% of their
    latency; up to 16 waited at the same time

## How to fix
Look at the KV cache and at how many requests run, in the server's log of that time. With KV blocks
free, raise the limit on running requests (`--max-num-seqs` of vLLM, `--max-running-requests` of
SGLang) or the token budget of a step. With none free, add replicas, shorten prompts or outputs, or
refuse requests while the queue is long.

## References
vLLM's span attribute `gen_ai.latency.time_in_queue` and its metric `request_queue_time_seconds`;
SGLang's span `prefill_waiting`; vLLM issue 42897 (requests wait for minutes).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.loads import loads
from stepscope.analyzers.views.requests import (
    LEAVES,
    REQUEST,
    events,
    has_arrivals,
    requests,
    waits,
)
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "see in the server's log whether KV blocks are free: if so, raise the limit on running "
    "requests (--max-num-seqs, --max-running-requests); if not, add replicas, or refuse requests "
    "while the queue is long"
)


@dataclass(frozen=True, slots=True)
class LongQueue:
    """Requests waited in the queue for `min_ns` and for `min_share` of their latency."""

    code: ClassVar[str] = "STV025"
    name: ClassVar[str] = "long-queue"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request",)

    min_ns: int = 5 * SECOND
    min_share: float = 0.5
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether arrivals and admissions are recorded, and no batch, decision or load is."""
        if not trace.manifest.clock.has_times or not has_arrivals(trace):
            return False
        is_admitted = any_row(events(trace).filter(pl.col("event").is_in(LEAVES)))
        explains = any(map(trace.has, ("batch_rows", "decisions"))) or any_row(
            loads(trace).filter(pl.col("num_waiting").is_not_null())
        )
        return is_admitted and not explains

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, at the request that waited longest."""
        lasted = pl.col("to_ns") - pl.col("from_ns")
        waited = (
            waits(trace)
            .group_by(REQUEST)
            .agg(
                pl.col("from_ns", "to_ns", "step").sort_by(-lasted, "from_ns").first(),
                waited_ns=lasted.sum(),
            )
        )
        latencies = _latencies(trace)
        long = (
            latencies.join(waited, on=REQUEST)
            .filter(
                pl.col("waited_ns") >= self.min_ns,
                pl.col("waited_ns") >= self.min_share * pl.col("latency_ns"),
            )
            .collect()
        )
        if long.is_empty():
            return []
        rows = (
            long.lazy()
            .sort("rank", "waited_ns", "from_ns", "request", descending=[False, True, False, False])
            .group_by("rank", maintain_order=True)
            .agg(
                pl.col("request", "step").first(),
                ts_ns=pl.col("from_ns").first(),
                end_ns=pl.col("to_ns").first(),
                count=pl.len(),
                most_ns=pl.col("waited_ns").max(),
                mean_ns=pl.col("waited_ns").mean(),
                share=pl.col("waited_ns").sum() / pl.col("latency_ns").sum(),
            )
            .join(latencies.group_by("rank").agg(num_requests=pl.len()), on="rank")
            .join(_most_at_once(trace, long.lazy()), on="rank")
            .sort("rank")
        )
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{row['count']:,} of {times(row['num_requests'], 'request')} waited "
            f"{duration(row['mean_ns'])} on average in the queue (at most "
            f"{duration(row['most_ns'])}), {row['share']:.1%} of their latency; up to "
            f"{row['at_once']:,} waited at the same time"
        )
        evidence: Evidence = {
            "requests that waited": row["count"],
            "requests": row["num_requests"],
            "mean wait_ns": round(row["mean_ns"]),
            "longest wait_ns": row["most_ns"],
            "share of their latency": round(row["share"], 4),
            "waiting at the same time": row["at_once"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _latencies(trace: Trace) -> pl.LazyFrame:
    """How long each request took, as `blame` has it: rank, request, latency_ns.

    From when the front end received it, where that is recorded, until the client had the last of
    it; of a request without an end, until the end of the trace.
    """
    at, event = pl.col("ts_ns"), pl.col("event")
    client = events(trace).group_by(REQUEST).agg(
        received_ns=at.filter(event == "receive").min(),
        delivered_ns=at.filter(event == "deliver").max(),
    )  # fmt: skip
    delivered = pl.when(pl.col("outcome").is_not_null()).then("delivered_ns")
    begins = pl.min_horizontal("arrive_ns", "received_ns")
    return (
        requests(trace)
        .join(client, on=REQUEST, how="left")
        .select(*REQUEST, latency_ns=pl.max_horizontal("ended_ns", delivered) - begins)
    )


def _most_at_once(trace: Trace, long: pl.LazyFrame) -> pl.LazyFrame:
    """How many of the requests in `long` waited at the same time at most: rank, at_once."""
    intervals = waits(trace).join(long, on=REQUEST, how="semi")
    # At one moment, a wait that ends goes before one that begins.
    changes = [
        intervals.select("rank", ts_ns=moment, change=pl.lit(change))
        for moment, change in (("from_ns", 1), ("to_ns", -1))
    ]
    return (
        pl.concat(changes)
        .sort("rank", "ts_ns", "change")
        .with_columns(waiting=pl.col("change").cum_sum().over("rank"))
        .group_by("rank")
        .agg(at_once=pl.col("waiting").max())
    )
