"""preemption-thrash: requests computed more tokens again than anew, because they were preempted.

## What it finds
Requests whose recomputed tokens (those up to a position that they had reached before) are at least
`min_tokens`, and more than `max_share` of their new ones. One preemption does that only where it
also lost what the prefix cache had given: else it throws away at most what had been computed once.
All such requests of a rank are one finding, placed at the worst, and the worst five are named, with
what that is of all tokens that the rank computed.

Only tokens that were recomputed after a preemption count: a request that went back without a
preemption was reset (KVB010). Recomputed tokens follow from the position at which each batch row
begins or, if that was not recorded, from `is_recompute`. Steps that were inferred from tags say
nothing about requests, so the rule is not applicable to them.

## Why it hurts
The engine looks busy: tokens are computed at full speed, and thrown away. Latency grows with every
round, and since a preempted request is longer each time, each round costs more than the last.

## Example
    25 requests computed 66,784 tokens again and 3,104 anew: req-03 (4,120 and 118, preempted 26
    times), req-01 (3,998 and 121, preempted 25 times), ...

## How to fix
Admit less: keep enough blocks free for what runs to grow, and hold the queue while anybody has been
preempted. Preempt the youngest, who loses least, and only when blocks are short (KVB003). Swap
long requests out instead of recomputing them.

## References
vLLM's warning "Sequence group is preempted ... by PreemptionMode.RECOMPUTE"; mistral.rs issue 2033,
where work was thrown away in almost every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.kvb.recomputed import recomputed
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.requests import REQUEST, events
from stepscope.ingest.trace import Trace

FIX = (
    "keep blocks free for what runs to grow, hold the queue after a preemption, "
    "and preempt the youngest only"
)
NAMED = 5


@dataclass(frozen=True, slots=True)
class PreemptionThrash:
    """A request recomputed `min_tokens` or more, and more than `max_share` times its new tokens."""

    code: ClassVar[str] = "KVB004"
    name: ClassVar[str] = "preemption-thrash"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("batch_rows", "lifecycle.request")

    max_share: float = 1.0
    min_tokens: int = 32
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known what each row computed before, or what it computes again."""
        return any(knows(trace, f"batch_rows.{name}") for name in ("num_computed", "is_recompute"))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of requests that thrash."""
        preempted = events(trace).filter(pl.col("event") == "preempt")
        worst = ("num_again", "num_new", "request", "num_preempted")
        run = pl.col("num_again", "num_new").sum().over("rank").name.suffix("_of_run")
        thrash = (
            _computed(trace)
            .with_columns(run)
            .filter(
                pl.col("num_again") > self.max_share * pl.col("num_new"),
                pl.col("num_again") >= self.min_tokens,
            )
            .join(
                preempted.group_by(REQUEST).agg(num_preempted=pl.len()), on=REQUEST, how="left"
            )
            .with_columns(pl.col("num_preempted").fill_null(0))
            .sort("rank", -pl.col("num_again"), "num_new", "request")
            .group_by("rank", maintain_order=True)
            .agg(
                pl.col("request", "step", "ts_ns").first(),
                pl.col("end_ns").max(),
                pl.col(worst).head(NAMED).name.prefix("worst_"),
                pl.col("num_again", "num_new").sum(),
                pl.col("num_again_of_run", "num_new_of_run").first(),
                count=pl.len(),
            )
            .sort("rank")
        )  # fmt: skip
        return each(self, thrash.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        columns = (row[f"worst_{name}"] for name in ("request", "num_again", "num_new"))
        preempted = row["worst_num_preempted"]
        worst = [
            f"{request} ({again:,} and {new:,}, preempted {times(num_times, 'time')})"
            for request, again, new, num_times in zip(*columns, preempted, strict=True)
        ]
        more = ", ..." if row["count"] > len(worst) else ""
        message = (
            f"{times(row['count'], 'request')} computed {times(row['num_again'], 'token')} again "
            f"and {row['num_new']:,} anew: {', '.join(worst)}{more}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            "recomputed_tokens": row["num_again"],
            "new_tokens": row["num_new"],
            "run_tokens": row["num_again_of_run"] + row["num_new_of_run"],
            "worst": worst[0],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _computed(trace: Trace) -> pl.LazyFrame:
    """The tokens that each request recomputed because of preemptions, and all of its tokens."""
    is_again = (pl.col("again") > 0) & pl.col("is_preempted").fill_null(value=False)
    again = pl.when(is_again).then("again").otherwise(0)
    return (
        recomputed(trace)
        .group_by(REQUEST)
        .agg(
            pl.col("step").filter(is_again).min(),
            pl.col("ts_ns").filter(is_again).min(),
            end_ns=pl.col("ts_ns").filter(is_again).max(),
            num_again=again.sum(),
            num_new=(pl.col("num_tokens") - pl.col("again")).sum(),
        )
    )
