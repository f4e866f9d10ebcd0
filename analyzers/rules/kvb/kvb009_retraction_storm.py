"""retraction-storm: requests are taken out of the batch for KV again and again, round after round.

## What it finds
In logs and counters: at least `min_rounds` reports of retracted (SGLang), preempted (vLLM) or
paused (TensorRT-LLM) requests, each within `max_gap_ns` of the one before. One full pool is met by
one round; a storm is when the room that it makes is gone at once, because more were let in than can
grow. vLLM reports every 10 s, so `max_gap_ns` is a little more than the interval of two reports: a
storm is rounds in consecutive reports, whatever the length of the log. For a total that is read
less often, such as a metric of Prometheus, the gap is one and a half of its intervals,
`max_scrape_ns` at most. The storms of a rank are one finding, placed at the one with most requests.

Such reports count requests and do not name them. Where each request's events are recorded, KVB004
says which ones thrash.

## Why it hurts
What was computed for a retracted request is thrown away and computed again, in the steps of those
that are left. Throughput falls while the queue grows, and each that comes back is longer than it
was.

## Example
    5 rounds in 1.0 s retracted 5 requests; the KV cache was 100.0% full, up to 20 waited

## How to fix
Let fewer in: a lower `--max-running-requests` or `--max-num-seqs`, or a higher
`--schedule-conservativeness`, so that those who run have room to grow. Give the KV cache more
memory, or cap the length of outputs.

## References
SGLang issues 26248 (throughput falls to a fourteenth after a retraction) and 38019 (retractions
that never end); vLLM's guide on preemption.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.analyzers.views.loads import loads
from stepscope.ingest.times import FAR_NS, SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "let fewer run (--max-running-requests, --max-num-seqs, --schedule-conservativeness), "
    "so that those who do have room to grow, or give the KV cache more memory"
)
# Requests since the report before, by the engine's own name for it.
NEW = (
    "#retracted_reqs", "Preemptions", "num_preempted_reqs",
    "inflightBatchingStats.numPausedRequests",
)  # fmt: skip
# All requests so far.
TOTAL = (
    "vllm:num_preemptions_total", "vllm:num_preemptions", "sglang:num_retracted_reqs_total",
    "total_num_cumulative_preemption",
)  # fmt: skip
SGLANG = "SGLang Decode batch lines"


@dataclass(frozen=True, slots=True)
class RetractionStorm:
    """At least `min_rounds` reports of retractions came within `max_gap_ns` of one another."""

    code: ClassVar[str] = "KVB009"
    name: ClassVar[str] = "retraction-storm"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (CLOCK,)

    min_rounds: int = 4
    max_gap_ns: int = 12 * SECOND
    max_scrape_ns: int = 60 * SECOND
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether retractions are told of, or would be: SGLang has a line for each round."""
        says_so = pl.col("inferred") == SGLANG
        return any_row(_reports(trace)) or any_row(trace.steps.filter(says_so))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of storms, placed at the worst."""
        gap = pl.col("ts_ns").diff().over("rank")
        scraped = (pl.col("every_ns") * 3 // 2).clip(upper_bound=self.max_scrape_ns).fill_null(0)
        most = pl.max_horizontal(scraped, pl.lit(self.max_gap_ns))
        storm = (gap > most).fill_null(value=True).cum_sum().over("rank")
        worst = pl.all().exclude("rank").sort_by("num_reqs", -pl.col("ts_ns")).last()
        storms = (
            _reports(trace)
            .with_columns(every_ns=pl.col("every_ns").median().over("rank").cast(pl.Int64))
            .filter(pl.col("num_reqs") > 0)
            .with_columns(storm=storm)
            .group_by("rank", "storm")
            .agg(
                pl.col("ts_ns").min(),
                pl.col("num_reqs").sum(),
                end_ns=pl.col("ts_ns").max(),
                num_rounds=pl.len(),
            )
            .filter(pl.col("num_rounds") >= self.min_rounds)
            .group_by("rank")
            .agg(worst, count=pl.len(), all_reqs=pl.col("num_reqs").sum())
            .sort("rank")
        )
        rows = _with_load(storms, trace).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        lasted_ns, num_reqs = row["end_ns"] - row["ts_ns"], int(row["num_reqs"])
        usage, waiting = row["kv_usage"], row["num_waiting"]
        parts = (
            None if usage is None else f"the KV cache was {usage:.1%} full",
            None if waiting is None else f"up to {waiting:,.0f} waited",
        )
        also = ", ".join(part for part in parts if part)
        message = (
            f"{times(row['num_rounds'], 'round')} in {duration(lasted_ns)} retracted "
            f"{times(num_reqs, 'request')}" + (f"; {also}" if also else "")
        )
        evidence: Evidence = {
            "rounds": row["num_rounds"],
            "requests": num_reqs,
            "lasted_ns": lasted_ns,
            "storms": row["count"],
            "requests in all storms": int(row["all_reqs"]),
            "used_share": usage,
            "waiting at most": None if waiting is None else int(waiting),
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _reports(trace: Trace) -> pl.LazyFrame:
    """How many requests were retracted since the report before: rank, ts_ns, num_reqs, in order.

    `every_ns` is since the sample before of a total, null of other reports.
    """
    value = pl.col("value")
    since = value.diff().clip(lower_bound=0).over("rank", "track", "name").fill_null(0)
    is_total = pl.col("name").is_in(TOTAL)
    return (
        trace.counters.filter(
            pl.col("name").is_in([*NEW, *TOTAL]),
            pl.col("ts_ns").is_not_null(),
            value.is_finite() & (value >= 0),
        )
        .with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
        .sort("rank", "ts_ns", maintain_order=True)
        .select(
            "rank",
            "ts_ns",
            num_reqs=pl.when(is_total).then(since).otherwise(value),
            every_ns=pl.when(is_total).then(pl.col("ts_ns").diff().over("rank", "track", "name")),
        )
    )


def _with_load(storms: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add the most of the KV cache that was used in a storm, and the most that waited."""
    told = loads(trace).select("rank", "kv_usage", "num_waiting", at_ns="ts_ns")
    in_storm = pl.col("at_ns").is_between("ts_ns", "end_ns")
    load = (
        storms.select("rank", "ts_ns", "end_ns")
        .join(told, on="rank")
        .filter(in_storm)
        .group_by("rank")
        .agg(pl.col("kv_usage", "num_waiting").max())
    )
    return storms.join(load, on="rank", how="left", maintain_order="left")
