"""never-fits: a request waits for more KV blocks than there are.

## What it finds
Requests that were held back because they need more KV blocks than the whole pool has, or more
tokens of a pool that is counted in tokens, and not turned away: no wait is long enough for them.
All of a rank are one finding, placed at the first. Requests that are rejected for that are rightly
so; those that are rejected and would fit are STV008's.

## Why it hurts
Its client waits until somebody's timeout. Where the queue is served in order, nobody behind it is
looked at any more, and an engine with an empty pool serves nothing.

## Example
    1 request waits for more KV blocks than there are: req-00 needs 7 and the pool has 5, held for
    29.8 ms until it was aborted

## How to fix
Compare with the size of the pool when a request arrives, prompt and output together, and reject
what can never fit with an error that says so. Set the longest context that is accepted by the pool,
or make the pool larger.

## References
vLLM issues 35541 (a prompt of 63 blocks and a pool of 49: the scheduler tries for ever) and 39734
(a request within `max_model_len` that exceeds the KV cache); vllm-ascend pull request 17143 (tried
3,684 times, and nobody was told).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.declared import page_size
from stepscope.analyzers.views.known import CLOCK
from stepscope.analyzers.views.ownership import POOLED
from stepscope.analyzers.views.requests import REQUEST, ends, has_decisions, last_moment
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = "reject on arrival what is larger than the whole pool, with an error that says so"
MOST_BLOCKS = 2**40
_HOW = {
    "finish": "finished",
    "abort": "was aborted",
    "reject": "was rejected",
    "error": "failed",
}


@dataclass(frozen=True, slots=True)
class NeverFits:
    """A request was held that needs more KV blocks, or tokens of KV, than the pool has."""

    code: ClassVar[str] = "STV014"
    name: ClassVar[str] = "never-fits"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "decisions.resource",
        "decisions.needed",
        "steps.kv_blocks_total",
        CLOCK,
    )

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether of anybody who lacked KV it is known how much, and how much there is."""
        known = pl.all_horizontal(pl.col("needed", "whole").is_not_null())
        told = _held(trace).select(known.any() | (pl.len() == 0))
        return has_decisions(trace) and bool(told.collect().item())

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of requests, placed at the first of them."""
        held = (
            _held(trace)
            .with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
            .filter(pl.col("needed") > pl.col("whole"))
            .group_by("rank", "resource", "whole", request="subject")
            .agg(pl.col("ts_ns", "step").min(), pl.col("needed").max())
            .join(ends(trace).drop("cause"), on=REQUEST, how="left")
            .join(last_moment(trace), on="rank", how="left")
            .with_columns(end_ns=pl.coalesce("ended_ns", "trace_end_ns", "ts_ns"))
        )
        pool = ("rank", "resource")
        first = pl.all().exclude(pool).sort_by("ts_ns", "request").first()
        rows = held.group_by(pool).agg(first, count=pl.len()).sort(pool)
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        held_ns, unit = row["end_ns"] - row["ts_ns"], POOLED[row["resource"]]
        counted = "blocks" if row["resource"] == "kv-block" else "tokens"
        waits, first = ("wait", "first ") if row["count"] > 1 else ("waits", "")
        ended = f" until it {_HOW[row['outcome']]}" if row["outcome"] else ""
        message = (
            f"{times(row['count'], 'request')} {waits} for more {unit} than there are: {first}"
            f"{row['request']} needs {row['needed']:,} and the pool has {row['whole']:,}, "
            f"held for {duration(held_ns)}{ended}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            f"needed_{counted}": row["needed"],
            f"pool_{counted}": row["whole"],
            "held_ns": held_ns,
            "outcome": row["outcome"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _held(trace: Trace) -> pl.LazyFrame:
    """Who was held back for KV, with `whole`: how much there is at all, in the same unit."""
    total = pl.col("kv_blocks_total").max()
    pool = trace.steps.group_by("rank").agg(total=total)
    in_tokens = pl.col("total").clip(0, MOST_BLOCKS) * pl.lit(page_size(trace), pl.Int64)
    whole = pl.when(pl.col("resource") == "kv-block").then("total").otherwise(in_tokens)
    held = trace.decisions.filter(
        pl.col("subject_kind") == "request",
        pl.col("verdict") == "deferred",
        pl.col("resource").is_in(list(POOLED)),
        pl.col("ts_ns").is_not_null(),
    )
    return held.join(pool, on="rank", how="left").with_columns(whole=whole)
