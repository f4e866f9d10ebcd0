"""block-leaked: a request ended and its KV blocks or slot were never released.

## What it finds
Blocks and slots that an owner had when it finished, was rejected or was aborted, and that it was
never seen to let go of, although the trace goes on after that. All of a rank's blocks, or slots,
are one finding, placed at the first request.

Where rows of `allocations` may be missing the rule is not applicable: the release may be one of
them. Nor is it where all who had any ended in the last moment of the trace: nobody watched then.
Nothing is said of an owner that was moved (`move`): which of its places its release is for is not
certain. An owner of which no end is recorded may still need what it has.

`grace_ns` is 1: blocks that are released at the very moment of the end are released in time.

## Why it hurts
The pool shrinks until nothing fits any more. First requests wait longer, then they preempt each
other (KVB004), then nobody comes in, and only a restart helps. It takes hours, and by then the
request that leaked is long forgotten.

## Example
    12 KV blocks of 3 requests were never released: first 4 of req-07, which ended 3.2 s before the
    end of the trace

## How to fix
Release in one place that every end goes through: finish, abort, reject, preemption, and the error
path of a step. Look first at the end that the evidence names.

## References
KV cache leaks on client aborts, in the issue trackers of vLLM and SGLang alike.
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
from stepscope.analyzers.views.ownership import CALLED, ownerships
from stepscope.analyzers.views.requests import ends, last_moment
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = "release in one place that every end of a request goes through: finish, abort, reject, error"


@dataclass(frozen=True, slots=True)
class BlockLeaked:
    """A request ended at least `grace_ns` before the trace did, and kept a block or slot."""

    code: ClassVar[str] = "KVB002"
    name: ClassVar[str] = "block-leaked"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("allocations", "lifecycle.request", CLOCK)

    grace_ns: int = 1
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether no release and no end can be missing, and it goes on after one of these."""
        is_watched = pl.col("trace_end_ns") - pl.col("ended_ns") >= self.grace_ns
        owners = trace.allocations.select("rank", request="owner").unique()
        held = _ended(trace).filter(is_watched).join(owners, on=["rank", "request"], how="semi")
        return trace.manifest.is_whole("allocations", "lifecycle") and any_row(held)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and kind of thing, with the number that leaked."""
        ended = _ended(trace)
        moved = trace.allocations.filter(pl.col("op") == "move").select("rank", "owner").unique()
        of_request = (
            ownerships(trace)
            .join(moved, on=["rank", "owner"], how="anti")
            .filter(pl.col("to_ns") == FAR_NS)
            .rename({"owner": "request"})
            .join(ended, on=["rank", "request"], how="left")
            .filter(
                pl.col("from_ns") <= pl.col("ended_ns"),
                pl.col("trace_end_ns") - pl.col("ended_ns") >= self.grace_ns,
            )
            .group_by("rank", "resource", "request")
            .agg(
                pl.col("ended_ns", "outcome", "cause", "trace_end_ns").first(),
                pl.col("step", "id").min(),
                ids=pl.col("id").unique(),
                num_held=pl.col("id").n_unique(),
            )
        )
        first = ("ended_ns", "request")
        rest = ("num_held", "outcome", "cause", "step", "id", "trace_end_ns")
        leaks = of_request.group_by("rank", "resource").agg(
            pl.col(*first, *rest).sort_by(first).first(),
            num_requests=pl.len(),
            count=pl.col("ids").explode().n_unique(),
        )
        placed = leaks.with_columns(ts_ns="ended_ns", end_ns="trace_end_ns")
        rows = placed.sort("rank", "resource").collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        what = CALLED.get(row["resource"], row["resource"])
        ago_ns = row["trace_end_ns"] - row["ended_ns"]
        were = "were" if row["count"] > 1 else "was"
        message = (
            f"{times(row['count'], what)} of {times(row['num_requests'], 'request')} {were} never "
            f"released: first {row['num_held']:,} of {row['request']}, which ended "
            f"{duration(ago_ns)} before the end of the trace"
        )
        ended = f"{row['outcome']}: {row['cause']}" if row["cause"] else row["outcome"]
        evidence: Evidence = {
            f"{what}s": row["count"],
            "requests": row["num_requests"],
            "first ended by": ended,
            "first of them": row["id"],
            "kept_ns": ago_ns,
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _ended(trace: Trace) -> pl.LazyFrame:
    """When each request ended, and the trace of its rank: adds trace_end_ns to `ends`."""
    return ends(trace).join(last_moment(trace), on="rank", how="left")
