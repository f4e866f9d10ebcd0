"""request-starved: a request waited past its deadline, or far beyond its share of the engine.

## What it finds
Requests that got nothing, or were overtaken, for too long, by one of two measures:

- a request with a deadline that did not finish by it, although others finished while it was there.
  Where nobody else did, everybody may starve: then it is one that spent more than `waited_share` of
  its time in no batch, or in batches that only computed again what a preemption had thrown away;
- a request without one that waited in the queue `max_shares` times as long as it would have been
  there under first come, first served. That share is read from the trace itself: the request that
  came n-th would have been gone at the n-th finish, or when all that came before it had ended if
  that was later: a large request may need what all of them hold. In order of arrival no request
  waits that long, whatever the lengths of requests and the speed of the engine are.

Where no batches are recorded, as in OpenTelemetry spans, only arrivals, admissions and ends are
judged. The waiting time of a request without a recorded admission is not known.

A request that its client aborted before the deadline is not counted. One that was rejected after it
had waited is, when its deadline came and went.

## Why it hurts
Throughput looks fine, and some users never get an answer. Averages and even P99 hide it when few
requests starve, and clients that time out and retry make it worse.

## Example
    req-00 did not finish by its deadline (abort: the client hung up): it was in a batch for 3.9 s
    of 26.1 s, waited 21.4 s in the queue and was preempted 4 times while 12 others finished

## How to fix
Choose by age, not by size: run the bucket of the oldest request, preempt only younger requests, and
give the oldest what it lacks before anyone younger gets it. STV002, STV003 and KVB003 show by which
decisions it starved.

## References
mistral.rs issue 2033 and pull request 2034 (24 of 40 requests starved); starvation by
shortest-job-first in general.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import CLOCK
from stepscope.analyzers.views.requests import (
    REQUEST,
    has_histories,
    neglected,
    requests,
    served,
    waits,
)
from stepscope.ingest.trace import Trace

FIX = (
    "choose by age, not by size: run the oldest request's bucket, preempt only younger requests, "
    "and give the oldest what it lacks before anyone younger"
)


@dataclass(frozen=True, slots=True)
class RequestStarved:
    """A request missed its deadline, or waited `max_shares` fair shares."""

    code: ClassVar[str] = "STV001"
    name: ClassVar[str] = "request-starved"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request", CLOCK)

    max_shares: float = 2.0
    waited_share: float = 0.5
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known when requests arrived, and what became of any."""
        return has_histories(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per starved request, oldest first, placed where it was neglected longest."""
        overtaken = pl.col("num_others") > 0
        too_long = (pl.col("shares") > self.max_shares).fill_null(value=False)
        slow = (
            _with_others(requests(trace))
            .join(_waited(trace), on=REQUEST, how="left")
            .with_columns(is_late=_missed_its_deadline(), shares=_fair_shares())
            .filter(pl.col("is_late") | (overtaken & too_long))
            .collect()
        )
        if slow.is_empty():
            return []
        starved = _with_batches(trace, slow.lazy()).filter(
            overtaken | (_waiting_share() > self.waited_share)
        )
        # Spans of a request have no event for a preemption: no event does not mean 0 of them.
        has_preemptions = trace.manifest.tables.get("lifecycle") == "complete"
        rows = (
            _with_step(trace, starved)
            .with_columns(has_preemptions=pl.lit(has_preemptions))
            .sort("rank", "age")
        )
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        waited_ns, ended = row["waited_ns"] or 0, _how_it_ended(row)
        preempted = f" and was preempted {times(row['num_preempted'], 'time')}"
        is_known = row["num_preempted"] or row["has_preemptions"]
        message = (
            f"{row['request']} {_what_was_wrong(row, ended)}: it {_what_it_did(row)}"
            f"{preempted if is_known else ''} while "
            f"{times(row['num_others'], 'other') if row['num_others'] else 'nobody else'} finished"
        )
        evidence: Evidence = {
            "outcome": ended,
            "time in system_ns": row["ended_ns"] - row["arrive_ns"],
            "served_ns": row["served_ns"],
            "recomputed_ns": row["again_ns"],
            "waited_ns": row["waited_ns"] if row["served_ns"] is None else waited_ns,
            "longest_in_no_batch_ns": row["end_ns"] - row["ts_ns"],
            "times preempted": row["num_preempted"] if is_known else None,
            "others finished": row["num_others"],
            "arrived_ns": row["arrive_ns"],
            "deadline_ns": row["deadline_ns"],
            "ended_ns": row["ended_ns"],
            "fair_share_ns": row["fair_ns"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence)


def _missed_its_deadline() -> pl.Expr:
    """Finished late, or was never to finish when its deadline came; a client's abort is neither."""
    was_dropped = (pl.col("outcome") == "reject") & (pl.col("ended_ns") > pl.col("arrive_ns"))
    until = pl.when(was_dropped).then("trace_end_ns").otherwise("ended_ns")
    never_finished = pl.col("finish_ns").is_null() & (until >= pl.col("deadline_ns"))
    is_late = pl.col("finish_ns") > pl.col("deadline_ns")
    return (is_late.fill_null(value=False) | never_finished).fill_null(value=False)


def _fair_shares() -> pl.Expr:
    """How many fair shares a request without a deadline waited."""
    shares = pl.col("waited_ns") / pl.col("fair_ns")
    return pl.when(pl.col("deadline_ns").is_null() & (pl.col("fair_ns") > 0)).then(shares)


def _waiting_share() -> pl.Expr:
    """The share of its time in which a request got no further.

    That is in no batch, or where none is known in the queue, and wherever it was computed again.
    """
    here = pl.col("ended_ns") - pl.col("arrive_ns")
    stood = pl.coalesce(here - pl.col("served_ns") + pl.col("again_ns"), "waited_ns").fill_null(0)
    return pl.when(here > 0).then(stood / here).otherwise(0.0)


def _with_others(requests: pl.LazyFrame) -> pl.LazyFrame:
    """Add what others did: num_others finished while it was there; and its fair_ns."""
    finishes = (
        requests.filter(pl.col("finish_ns").is_not_null())
        .select("rank", "finish_ns")
        .sort("rank", "finish_ns")
        .with_columns(age=pl.int_range(pl.len()).over("rank"))
    )
    until = finishes.group_by("rank", "finish_ns").agg(num=pl.col("age").max() + 1)
    counted = requests
    for column in ("arrive_ns", "ended_ns"):
        ordered = until.sort("finish_ns").rename({"finish_ns": column, "num": f"num_{column}"})
        counted = counted.sort(column).join_asof(
            ordered, on=column, by="rank", check_sortedness=False
        )
    own = pl.col("finish_ns").is_not_null().cast(pl.Int64)
    gone = pl.col("num_ended_ns").fill_null(0) - pl.col("num_arrive_ns").fill_null(0)
    nth = finishes.rename({"finish_ns": "nth_finish_ns"})
    return (
        counted.with_columns(num_others=gone - own)
        .join(nth, on=["rank", "age"], how="left")
        .sort("rank", "age")
        .with_columns(older_ns=pl.col("ended_ns").cum_max().shift(1).over("rank"))
        .with_columns(fair_ns=pl.max_horizontal("nth_finish_ns", "older_ns") - pl.col("arrive_ns"))
    )


def _waited(trace: Trace) -> pl.LazyFrame:
    """How long each request waited in all, and its longest wait: from_ns, to_ns, step."""
    lasted = pl.col("to_ns") - pl.col("from_ns")
    longest = pl.col("from_ns", "to_ns", "step").sort_by(-lasted, "from_ns").first()
    return waits(trace).group_by(REQUEST).agg(longest, waited_ns=lasted.sum())


def _with_batches(trace: Trace, starved: pl.LazyFrame) -> pl.LazyFrame:
    """Add how long each was in batches, and put it where it was in none for longest."""
    return (
        starved.join(served(trace), on=REQUEST, how="left")
        .join(neglected(trace, starved), on=REQUEST, how="left", suffix="_neglected")
        .with_columns(
            ts_ns=pl.coalesce("from_ns_neglected", "from_ns", "arrive_ns"),
            end_ns=pl.coalesce("to_ns_neglected", "to_ns", "ended_ns"),
        )
    )


def _with_step(trace: Trace, starved: pl.LazyFrame) -> pl.LazyFrame:
    """Put in `step` the one that ran, or began, at `ts_ns`; where none did, leave what is there."""
    begun = trace.steps.filter(pl.col("ts_ns").is_not_null())
    begun = begun.select("rank", "ts_ns", running="step").sort("ts_ns", "running")
    return (
        starved.sort("ts_ns")
        .join_asof(begun, on="ts_ns", by="rank", check_sortedness=False)
        .with_columns(step=pl.coalesce("running", "step"))
    )


def _how_it_ended(row: Mapping[str, Any]) -> str:
    outcome = row["outcome"] or "still there at the end of the trace"
    return f"{outcome}: {row['cause']}" if row["cause"] else outcome


def _what_it_did(row: Mapping[str, Any]) -> str:
    if row["served_ns"] is None and row["waited_ns"] is None:
        return f"was in the system for {duration(row['ended_ns'] - row['arrive_ns'])}"
    waited = f"waited {duration(row['waited_ns'] or 0)} in the queue"
    if row["served_ns"] is None:
        return waited
    here = f"{duration(row['served_ns'])} of {duration(row['ended_ns'] - row['arrive_ns'])}"
    if row["again_ns"]:
        here += f", {duration(row['again_ns'])} of them to compute again what was thrown away"
    return f"was in a batch for {here}, {waited}"


def _what_was_wrong(row: Mapping[str, Any], ended: str) -> str:
    if not row["is_late"]:
        return f"waited {row['shares']:.1f} times its fair share of {duration(row['fair_ns'])}"
    if row["finish_ns"] is None:
        return f"did not finish by its deadline ({ended})"
    return f"finished {duration(row['finish_ns'] - row['deadline_ns'])} after its deadline"
