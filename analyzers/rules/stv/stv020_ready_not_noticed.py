"""ready-not-noticed: what a request waited for has come, and the scheduler does not look.

## What it finds
Requests that waited for something beside room, a grammar to be compiled or KV that comes from
elsewhere, and were ready for more than `max_steps` steps before anything was decided about them:
they were not promoted, let in, told what else they lack, or ended. That they wait behind another
one is no decision. All of a rank are one finding, placed at the one that was ready for longest.

## Why it hurts
Who is ready is told to be not, so nothing that is measured shows why the queue grows. What failed
to come is not noticed either, and its client gets no error; and where such a request holds KV
blocks, those who need them wait for somebody that nobody looks at.

## Example
    8 requests were ready and not looked at: longest json-00 for 31 steps (2 to 32, 18.9 s), told
    last that "its grammar is being compiled"

## How to fix
Ask in every step which of the requests that were skipped are ready, not only when the loop over the
queue comes to them: the token budget, a running slot or the head of the queue may stop it before.

## References
vLLM issue 53130 (skipped requests that are ready are not promoted while prompts take the whole
budget) and pull request 53772; pull requests 40968 and 44560 (a request whose KV has come stands
behind one that cannot be let in).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.batches import when_formed
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.analyzers.views.left_out import left_out
from stepscope.analyzers.views.requests import REQUEST, events, has_decisions, last_moment
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "ask in every step which skipped requests are ready, not only when the loop over the queue "
    "comes to them"
)
READY = "ready"


@dataclass(frozen=True, slots=True)
class ReadyNotNoticed:
    """A request was ready for more than `max_steps` steps before anything was decided about it."""

    code: ClassVar[str] = "STV020"
    name: ClassVar[str] = "ready-not-noticed"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "lifecycle.request",
        "decisions",
        "steps.num_waiting",
        CLOCK,
    )

    max_steps: int = 8
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known when what requests waited for came, and what was decided."""
        is_told = any_row(events(trace).filter(pl.col("event") == READY))
        return is_told and has_decisions(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of requests, placed at the longest."""
        late = _with_steps(_unnoticed(trace), trace).filter(pl.col("num_steps") > self.max_steps)
        longest = pl.all().exclude("rank").sort_by("num_steps", -pl.col("ts_ns"), "request").last()
        rows = late.group_by("rank").agg(longest, count=pl.len()).sort("rank")
        return each(self, rows.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        several = row["count"] > 1
        told = f', told last that "{row["reason"]}"' if row["reason"] else ""
        message = (
            f"{times(row['count'], 'request')} {'were' if several else 'was'} ready and not looked "
            f"at: {'longest ' if several else ''}{row['request']} for "
            f"{times(row['num_steps'], 'step')} ({row['step']} to {row['last_step']}, "
            f"{duration(row['end_ns'] - row['ts_ns'])}){told}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            "longest run_steps": row["num_steps"],
            "unnoticed_ns": row["end_ns"] - row["ts_ns"],
            "told last": row["reason"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _unnoticed(trace: Trace) -> pl.LazyFrame:
    """From when to when each ready request was not looked at: rank, request, ts_ns, end_ns, reason.

    Until the next that happened to it, or was decided about it beside its place in the queue.
    """
    known = events(trace)
    ready = known.filter(pl.col("event") == READY).select(*REQUEST, "ts_ns")
    happened = known.filter(pl.col("event") != READY).select(*REQUEST, noticed_ns="ts_ns")
    is_decided = pl.col("resource").is_null() | (pl.col("resource") != "queue")
    decided = trace.decisions.filter(
        pl.col("subject_kind") == "request", pl.col("ts_ns").is_not_null(), is_decided
    ).select("rank", request="subject", noticed_ns=pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
    noticed = pl.concat([happened, decided]).sort("noticed_ns")
    return (
        ready.sort("ts_ns")
        .join_asof(
            noticed, left_on="ts_ns", right_on="noticed_ns", by=list(REQUEST),
            strategy="forward", check_sortedness=False,
        )
        .join(last_moment(trace), on="rank", how="left")
        .with_columns(end_ns=pl.coalesce("noticed_ns", "trace_end_ns", "ts_ns"))
        .select(*REQUEST, "ts_ns", "end_ns")
    )  # fmt: skip


def _with_steps(unnoticed: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add the steps that were formed meanwhile: step, last_step, num_steps, and what was told."""
    steps = when_formed(trace).select("rank", "step", "formed_ns").sort("rank", "formed_ns", "step")
    placed = steps.with_columns(place=pl.int_range(pl.len()).over("rank")).sort("formed_ns")
    first = unnoticed.sort("ts_ns").join_asof(
        placed.rename({"place": "first_place"}), left_on="ts_ns", right_on="formed_ns", by="rank",
        strategy="forward", check_sortedness=False,
    )  # fmt: skip
    last = placed.select("rank", before_ns="formed_ns", last_step="step", last_place="place")
    both = first.sort("end_ns").join_asof(
        last, left_on="end_ns", right_on="before_ns", by="rank",
        allow_exact_matches=False, check_sortedness=False,
    )  # fmt: skip
    return _told(both, trace).with_columns(
        num_steps=pl.col("last_place") - pl.col("first_place") + 1
    )


def _told(unnoticed: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add the reason that was told last of each request when it became ready."""
    reasons = (
        left_out(trace)
        .filter(pl.col("resource").is_null() | (pl.col("resource") != "queue"))
        .select(*REQUEST, "reason", told_ns="ts_ns")
        .sort("told_ns")
    )
    return unnoticed.sort("ts_ns").join_asof(
        reasons, left_on="ts_ns", right_on="told_ns", by=list(REQUEST), check_sortedness=False
    )
