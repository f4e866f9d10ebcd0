"""bucket-starved: the bucket of the oldest request was not chosen, many times running.

## What it finds
An engine that pads batches runs requests of equal shape together, a *bucket* a step, and chooses
among the buckets that compete. The rule follows the oldest request that competes. It fires when
that request's bucket was passed over in more than `max_misses` choices running. Choices in which
only one bucket competed are no choices. Streaks of one request are one finding.

## Why it hurts
A policy that prefers short sequences, or full buckets, has no bound on how long it passes over the
others. Sequences only grow, so whoever falls behind stays behind for as long as shorter ones come.

## Example
    the bucket of req-02, the oldest that competed, was passed over 29 times running
    (steps 74 to 130), last for len=94 text

## How to fix
Choose the bucket that holds the oldest request, or add age to whatever is preferred (for example,
the oldest's bucket at the latest every 16 steps).

## References
mistral.rs pull request 2034: completion buckets chosen by the shortest sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.requests import REQUEST, requests
from stepscope.ingest.trace import Trace

FIX = "choose the bucket of the oldest request, at the latest after a few steps without it"


@dataclass(frozen=True, slots=True)
class BucketStarved:
    """The bucket of the oldest request was passed over more than `max_misses` times running."""

    code: ClassVar[str] = "STV003"
    name: ClassVar[str] = "bucket-starved"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("decisions.holder", "lifecycle.request")

    max_misses: int = 16
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether buckets competed, of whose requests it is known when they arrived."""
        return any_row(_choices(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per request whose bucket starved, longest streak first, placed at it."""
        streaks = _streaks(_choices(trace)).filter(pl.col("num_misses") > self.max_misses)
        worst = pl.all().exclude(REQUEST).sort_by("num_misses", "ts_ns").last()
        starved = (
            streaks.group_by(REQUEST)
            .agg(worst, count=pl.len(), all_misses=pl.col("num_misses").sum())
            .sort(-pl.col("num_misses").cast(pl.Int64), "ts_ns", *REQUEST)
        )
        return each(self, starved.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"the bucket of {row['request']}, the oldest that competed, was passed over "
            f"{times(row['num_misses'], 'time')} running (steps {row['step']} to "
            f"{row['last_step']}), last for {row['instead']}"
        )
        evidence: Evidence = {
            "longest streak": row["num_misses"],
            "bucket": row["bucket"],
            "last for": row["instead"],
            "streaks": row["count"],
            "times passed over in streaks": row["all_misses"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _choices(trace: Trace) -> pl.LazyFrame:
    """Choices among buckets: the oldest request that competed, and what its bucket got."""
    ages = requests(trace).select("rank", "age", holder="request")
    row = ("holder", "subject", "verdict", "instead")
    oldest = pl.col(row).sort_by("age", *row).first()
    return (
        trace.decisions.filter(pl.col("subject_kind") == "bucket", pl.col("ts_ns").is_not_null())
        .join(ages, on=["rank", "holder"])
        .group_by("rank", "step", "ts_ns")
        .agg(oldest)
        .rename({"holder": "request", "subject": "bucket"})
        .sort("rank", "ts_ns", "step")
    )


def _streaks(choices: pl.LazyFrame) -> pl.LazyFrame:
    """Runs of choices in which one request was the oldest and its bucket was passed over."""
    is_missed = pl.col("verdict") == "passed-over"
    changes = (pl.struct("request", is_missed) != pl.struct("request", is_missed).shift(1)).over(
        "rank"
    )
    return (
        choices.with_columns(_streak=changes.fill_null(value=True).cum_sum().over("rank"))
        .filter(is_missed)
        .group_by(*REQUEST, "_streak")
        .agg(
            pl.col("step", "ts_ns").min(),
            pl.col("bucket", "instead").sort_by("ts_ns", "step").last(),
            last_step=pl.col("step").max(),
            end_ns=pl.col("ts_ns").max(),
            num_misses=pl.len(),
        )
    )
