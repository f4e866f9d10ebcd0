"""ended-in-error: requests were let in, and ended because something went wrong.

## What it finds
Requests whose end is an error, or has a cause (on finish, abort or reject) that says that it went
wrong: an error, an exception, a failure. All that ended with one cause are one finding, placed at
the first of them, with how many tokens each of them had until then. Numbers in a cause, and what
follows the first line of it, do not make two causes of one.

A client's abort, a cap, a deadline are no errors; another end without a cause, or with one that
says none of this, is not judged. Where requests were aborted or rejected and no cause is recorded
at all, the rule is not applicable.

## Why it hurts
The client gets half an answer or none, and retries. Throughput and latency of those that finished
look as good as ever: averages are made over them alone.

## Example
    14 of 40 requests ended in error, because "error": first 16-a64f0fc4, aborted after 3 tokens

## How to fix
Look up the cause in the engine's own log at that time: it names the request. Where all of them are
of one kind (structured output, drafts, one adapter), it is that path.

## References
vLLM ends a request with the reason "error" when its grammar rejects a token that it was given; its
issues on structured output with speculative decoding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import NUMBER, times
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.requests import REQUEST, ends, events
from stepscope.ingest.trace import Trace

FIX = "look up the cause in the engine's log at that time, and the path that those requests share"
_WENT_WRONG = (
    r"(?i)\b(\w*error|errored|exception|fail(ed|ure|s)?|crash(ed)?|fatal|panic(ked)?|oom"
    r"|out of memory|corrupt(ed|ion)?|internal)\b"
)
_IS_ERROR = pl.col("outcome") == "error"
_HOW = {"finish": "finished", "abort": "aborted", "reject": "rejected", "error": "failed"}


@dataclass(frozen=True, slots=True)
class EndedInError:
    """At least `at_least` requests ended with one cause that says that something went wrong."""

    code: ClassVar[str] = "STV012"
    name: ClassVar[str] = "ended-in-error"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request",)

    at_least: int = 1
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether requests ended, and why if not by themselves: some say a cause at least."""
        ended = ends(trace)
        is_said = pl.col("cause").is_not_null() | _IS_ERROR
        are_unsaid = ~is_said.any() & (pl.col("outcome") != "finish").any()
        return any_row(ended) and not ended.select(are_unsaid).collect().item()

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per cause, with the number of requests, the cause of most of them first."""
        first = ("ts_ns", "request", "step", "outcome", "num_generated")
        ended = _ended(trace)
        all_ended = ended.group_by("rank").agg(num_ended=pl.len())
        causes = (
            ended.filter(_IS_ERROR | pl.col("cause").str.contains(_WENT_WRONG))
            .with_columns(why=pl.col("cause").str.split("\n").list.first())
            .with_columns(pl.col("why").str.replace_all(NUMBER, "*"))
            .group_by("rank", "why")
            .agg(
                pl.col(*first, "cause").sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                num_without=(pl.col("num_generated") == 0).sum(),
                count=pl.len(),
            )
            .filter(pl.col("count") >= self.at_least)
            .join(all_ended, on="rank", how="left")
            .sort(-pl.col("count").cast(pl.Int64), "rank", "why")
        )
        return each(self, causes.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        num_tokens = row["num_generated"]
        after = "" if num_tokens is None else f" after {times(num_tokens, 'token')}"
        why = "and nothing says why" if row["why"] is None else f'because "{row["why"]}"'
        message = (
            f"{row['count']:,} of {times(row['num_ended'], 'request')} ended in error, {why}: "
            f"first {row['request']}, {_HOW[row['outcome']]}{after}"
        )
        evidence: Evidence = {
            "cause": row["cause"],
            "requests": row["count"],
            "requests that ended": row["num_ended"],
            "ended without a token": row["num_without"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _ended(trace: Trace) -> pl.LazyFrame:
    """How each request ended: its last event but those that come after, and its tokens by then."""
    last = ("num_generated", "step")
    told = (
        events(trace)
        .group_by(*REQUEST, "ts_ns", "event")
        .agg(pl.col("num_generated").max(), pl.col("step").min())
        .rename({"event": "outcome"})
    )
    return (
        ends(trace)
        .rename({"ended_ns": "ts_ns"})
        .join(told, on=[*REQUEST, "ts_ns", "outcome"], how="left")
        .select(*REQUEST, "ts_ns", "outcome", "cause", *last)
    )
