"""double-scheduled: a request is in a batch twice, or in the batch of the step that evicted it.

## What it finds
Two kinds of rows of a batch, each a finding of its own:

- more than one row of one request in a step;
- a row of a request that waits when the batch is formed: it was preempted in that step, as a victim
  of somebody who came later, and its row stayed.

## Why it hurts
Two rows of a request compute the same token at the same position and write it to one place; which
one wins is a matter of timing, and the request grows by two. A victim's row reads and writes KV
blocks that belong to somebody else by then.

## Example
    2 rows of evicted requests are in batches: first req-30 in step 71, preempted for req-02

## How to fix
Choose victims only among requests that are not in the batch yet, or take the victim's row out and
give its tokens back to the budget. Keep the set of requests that are scheduled, and assert on it.

## References
vLLM V1's scheduler, which removes a preempted request from what is scheduled already; ATOM's mixed
batches, whose phases may each pick one request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.batches import STEP, rows
from stepscope.analyzers.views.requests import ENTERS, LEAVES, REQUEST, events
from stepscope.ingest.trace import Trace

FIX = (
    "choose victims among requests that are not in the batch, or take their rows out; "
    "assert that no request is scheduled twice"
)


@dataclass(frozen=True, slots=True)
class DoubleScheduled:
    """A request has two rows in a step, or a row in the step that preempted it."""

    code: ClassVar[str] = "BAT004"
    name: ClassVar[str] = "double-scheduled"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("batch_rows",)

    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and kind, with the number of rows too many, placed at the first."""
        first = ("ts_ns", "step", "request", "by")
        rows_too_many = (
            pl.concat([_twice(trace), _evicted(trace)])
            .group_by("rank", "what")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_requests=pl.col("request").n_unique(),
                count=pl.col("num_rows").sum(),
            )
            .sort("ts_ns", "rank", "what")
        )
        return each(self, rows_too_many.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        count, where = row["count"], f"first {row['request']} in step {row['step']}"
        if row["what"] == "twice":
            message = f"{times(count, 'row')} too many of requests that have one: {where}"
        else:
            are = "are in batches" if count > 1 else "is in a batch"
            by = f", preempted for {row['by']}" if row["by"] else ""
            message = f"{times(count, 'row')} of evicted requests {are}: {where}{by}"
        evidence: Evidence = {
            "rows": count,
            "requests": row["num_requests"],
            "preempted for": row["by"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=count)


_COLUMNS = (*STEP, "request", "ts_ns", "num_rows", "by", "what")


def _twice(trace: Trace) -> pl.LazyFrame:
    row = pl.struct(*REQUEST, "step").hash()
    twice = rows(trace).group_by(row=row).len().filter(pl.col("len") > 1).select("row").collect()
    return (
        rows(trace)
        .filter(row.is_in(twice["row"].implode()))
        .group_by(*REQUEST, "step")
        .agg(pl.col("ts_ns").min(), num_rows=pl.len().cast(pl.Int64) - 1)
        .filter(pl.col("num_rows") > 0)
        .with_columns(by=pl.lit(None, pl.String), what=pl.lit("twice"))
        .select(_COLUMNS)
    )


def _evicted(trace: Trace) -> pl.LazyFrame:
    """Rows of requests that were preempted in the step and wait once its batch is formed."""
    waits_after = _waiting_after(trace).collect().lazy()
    scheduled = (
        rows(trace)
        .join(waits_after, on=[*REQUEST, "step"], how="semi")
        .group_by(*REQUEST, "step")
        .agg(pl.col("ts_ns").min())
    )
    return (
        waits_after.join(scheduled, on=[*REQUEST, "step"])
        .filter((pl.col("preempted_ns") > pl.col("ts_ns")).fill_null(value=False).not_())
        .with_columns(num_rows=pl.lit(1, pl.Int64), what=pl.lit("evicted"))
        .select(_COLUMNS)
    )


def _waiting_after(trace: Trace) -> pl.LazyFrame:
    """Steps that preempted a request which is in a queue behind all that the step says of it.

    What happened outside of steps stands behind the last step before it. Who leaves a queue was in
    it, whether or not its arrival is in the trace.
    """
    event, step = pl.col("event"), pl.col("step")
    change = pl.when(event.is_in(ENTERS)).then(1).otherwise(-1)
    last_step = step.forward_fill().over(REQUEST).fill_null(-1)
    entered = pl.col("change").cum_sum().over(REQUEST)
    was_in_it = -entered.cum_min().over(REQUEST).clip(upper_bound=0)
    return (
        events(trace)
        .filter(event.is_in([*ENTERS, *LEAVES]))
        .filter((event == "preempt").any().over(REQUEST))
        .sort(*REQUEST, "ts_ns", maintain_order=True)
        .group_by(*REQUEST, "step", after=last_step)
        .agg(
            change=change.sum(),
            by=pl.col("by_request").filter(event == "preempt").min(),
            was_preempted=(event == "preempt").any(),
            preempted_ns=pl.col("ts_ns").filter(event == "preempt").min(),
        )
        .sort(*REQUEST, "after", step.is_null())
        .with_columns(in_queue=entered + was_in_it)
        .filter("was_preempted", step.is_not_null(), pl.col("in_queue") > 0)
    )
