"""silent-reject: a request that was dropped is told to have finished, or nothing says why it was.

## What it finds
Requests that finished without ever having been let in: no admission, no row of a batch, no token;
and requests that were rejected with neither a cause nor a decision that gives a reason. Each of the
two is one finding, placed at the first of them.

Where no request is known to have been let in, it is not known of any: then only rejections are
judged.

## Why it hurts
The client gets an empty answer with a status that says that all is well, and does not retry. What
counts errors sees none, and throughput goes up with every request that is dropped.

## Example
    8 of 24 requests finished and were never let in: first req-08, at 1.2 s, without a cause

## How to fix
End a request that is dropped as rejected, with the reason, and hand that on as an error: a status
before the first byte of a stream, an error frame behind it.

## References
SGLang pull requests 28175 (a full queue is told as HTTP 200) and 2956 (aborts came back as 200 with
a token), and issue 40459 (an input that is too long gets no answer at all).
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
from stepscope.analyzers.views.requests import LEAVES, REQUEST, ends, events
from stepscope.ingest.trace import Trace

FIX = "end what is dropped as rejected, with the reason, and hand it to the client as an error"
_SERVED = (*LEAVES, "first-token", "preempt")


@dataclass(frozen=True, slots=True)
class SilentReject:
    """A request finished and was never let in, or was rejected and nothing says why."""

    code: ClassVar[str] = "STV015"
    name: ClassVar[str] = "silent-reject"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether requests ended, and it is known who was let in, or some were rejected."""
        ended = ends(trace)
        rejected = ended.filter(pl.col("outcome") == "reject")
        return any_row(ended) and (_knows_who_was_let_in(trace) or any_row(rejected))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding of each kind per rank, with the number of requests."""
        kinds = [_unexplained(trace)]
        if _knows_who_was_let_in(trace):
            kinds.append(_never_let_in(trace))
        first = pl.all().exclude("rank", "outcome").sort_by("ts_ns", "request").first()
        num_ended = ends(trace).group_by("rank").agg(num_ended=pl.len())
        found = (
            pl.concat(kinds)
            .group_by("rank", "outcome")
            .agg(first, end_ns=pl.col("ts_ns").max(), count=pl.len())
            .join(num_ended, on="rank", how="left")
            .sort("rank", "outcome")
        )
        return each(self, found.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        were, those = ("were", "them") if row["count"] > 1 else ("was", "it")
        cause = f'told "{row["cause"]}"' if row["cause"] else "without a cause"
        how = {
            "finish": f"finished and {were} never let in: first {row['request']}, {cause}",
            "reject": f"{were} rejected and nothing says why: first {row['request']}",
        }
        message = f"{row['count']:,} of {times(row['num_ended'], 'request')} {how[row['outcome']]}"
        evidence: Evidence = {
            "requests": row["count"],
            "requests that ended": row["num_ended"],
            "told of " + those: row["outcome"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _ended(trace: Trace, outcome: str) -> pl.LazyFrame:
    ended = ends(trace).filter(pl.col("outcome") == outcome)
    return ended.select(*REQUEST, "outcome", "cause", ts_ns="ended_ns")


def _served(trace: Trace) -> pl.LazyFrame:
    """Who was let in, had a row of a batch, or a token."""
    let_in = events(trace).filter(
        pl.col("event").is_in(_SERVED) | (pl.col("num_generated") > 0).fill_null(value=False)
    )
    return pl.concat(
        [let_in.select(REQUEST), trace.batch_rows.select(REQUEST), trace.outputs.select(REQUEST)]
    ).unique()


def _knows_who_was_let_in(trace: Trace) -> bool:
    recorded = [table for table in ("batch_rows", "outputs") if trace.has(table)]
    admitted = events(trace).filter(pl.col("event").is_in(LEAVES))
    return any_row(admitted) and trace.manifest.is_whole("lifecycle", *recorded)


def _never_let_in(trace: Trace) -> pl.LazyFrame:
    """Who finished and arrived in the trace, and was not served in it."""
    arrived = events(trace).filter(pl.col("event") == "arrive").select(REQUEST).unique()
    finished = _ended(trace, "finish").join(arrived, on=REQUEST, how="semi")
    return finished.join(_served(trace), on=REQUEST, how="anti")


def _unexplained(trace: Trace) -> pl.LazyFrame:
    """Who was rejected without a cause, and without a decision that gives a reason."""
    told = trace.decisions.filter(
        pl.col("subject_kind") == "request",
        pl.col("verdict") == "rejected",
        pl.col("reason").is_not_null(),
    ).select("rank", request="subject")
    rejected = _ended(trace, "reject").filter(pl.col("cause").is_null())
    return rejected.join(told, on=REQUEST, how="anti")
