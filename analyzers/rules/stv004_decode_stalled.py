"""decode-stalled: a request that was in the middle of its output got no token for a long time.

## What it finds
For each request, the longest time between two of its tokens. It is a stall when it is longer than
`min_gap_ns` and than `max_ratio` times the median gap of its rank. The steps in between are counted
by kind, because they are what the request waited for. Requests whose stalls end in one step are
one finding, placed at the longest.

## Why it hurts
A user watches text stop in the middle of a sentence. The median and even P99 of the time between
tokens hardly show it: a request of 500 tokens has one such gap, so judge by the maximum.

## Example
    req-07 and 61 others got no token for up to 145.7 s (steps 5 to 498): 491 prefill steps took
    145.1 s, 2 mixed steps took 600.0 ms

## How to fix
When prefill steps are to blame: hold back budget for the decodes that are under way (a token for
each), and cap how much of a step one prompt may take. When it was preempted: choose victims by age,
and see KVB003 and KVB004. When other decodes are to blame: let every request run before any runs
again.

## References
The report on mixed prefill and decode batches in ATOM: the worst stall fell from 145.7 s to 1.29 s;
Sarathi-Serve (OSDI 2024) on generation stalls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.batches import formed, tokens
from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.requests import REQUEST, events
from stepscope.analyzers.rule import any_row, each, finding
from stepscope.analyzers.wording import duration, times
from stepscope.ingest.schema import STEP_KINDS

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = (
    "hold back budget for decodes under way and cap a prompt's share of a step; "
    "do not preempt the old for the young"
)


@dataclass(frozen=True, slots=True)
class DecodeStalled:
    """A gap between two tokens of a request is `max_ratio` times what is usual, and long."""

    code: ClassVar[str] = "STV004"
    name: ClassVar[str] = "decode-stalled"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("outputs", "steps")

    max_ratio: float = 100.0
    min_gap_ns: int = 1_000_000_000
    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per step that ended stalls, the longest stall first."""
        gaps = _gaps(trace).collect().lazy()
        if not any_row(gaps.filter(pl.col("gap_ns") > self.min_gap_ns)):
            return []
        usual = gaps.filter(pl.col("gap_ns") > 0).group_by("rank")
        median = usual.agg(median_ns=pl.col("gap_ns").median())
        is_stall = pl.col("gap_ns") > self.max_ratio * pl.col("median_ns")
        stalls = (
            _longest(gaps.filter(pl.col("gap_ns") > self.min_gap_ns))
            .join(median, on="rank", how="left")
            .filter(is_stall)
        )
        longest = pl.all().exclude("rank", "last_step").sort_by("gap_ns", "request").last()
        ends = stalls.group_by("rank", "last_step").agg(longest, count=pl.len())
        blamed = _with_preemptions(_with_steps(ends, trace), trace)
        rows = blamed.sort(-pl.col("gap_ns"), "rank", "last_step", nulls_last=True).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        others, num_preempted = row["count"] - 1, row["num_preempted"]
        who = row["request"] + (f" and {times(others, 'other')}" if others else "")
        message = (
            f"{who} got no token for {'up to ' * bool(others)}{duration(row['gap_ns'])} "
            f"(steps {row['step']} to {row['last_step']}): {_blame(row)}"
        )
        if num_preempted:
            message += f"; {row['request']} was preempted {times(num_preempted, 'time')}"
        evidence: Evidence = {
            "gap_ns": row["gap_ns"],
            "median_gap_ns": row["median_ns"],
            "requests": row["count"],
            "times preempted": num_preempted,
            **{f"{kind} steps": row[f"num_{kind}"] for kind in STEP_KINDS if row[f"num_{kind}"]},
            **{f"{kind}_ns": row[f"{kind}_ns"] for kind in STEP_KINDS if row[f"{kind}_ns"]},
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _gaps(trace: Trace) -> pl.LazyFrame:
    """Each token of a request but the first, with the time since the one before it."""
    return (
        tokens(trace)
        .select(*REQUEST, "ts_ns", last_step="step", _request=pl.struct(REQUEST).hash())
        .sort("ts_ns", "last_step")
        .with_columns(from_ns=pl.col("ts_ns").shift(1).over("_request"))
        .with_columns(gap_ns=pl.col("ts_ns") - pl.col("from_ns"))
        .filter(pl.col("gap_ns").is_not_null())
        .drop("_request")
    )


def _longest(gaps: pl.LazyFrame) -> pl.LazyFrame:
    order = ("gap_ns", "ts_ns", "last_step")
    return (
        gaps.group_by(REQUEST)
        .agg(pl.col(*order, "from_ns").sort_by(order).last())
        .rename({"ts_ns": "end_ns", "from_ns": "ts_ns"})
    )


def _with_steps(stalls: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add the step that began the stall, and how many steps of each kind began in it and took."""
    sums = []
    for kind in STEP_KINDS:
        is_kind = pl.col("kind").eq(kind).fill_null(value=False)
        lasted = pl.when(is_kind).then(pl.col("end_ns") - pl.col("ts_ns")).otherwise(0)
        sums.append(is_kind.cast(pl.Int64).cum_sum().over("rank").alias(f"num_{kind}"))
        sums.append(lasted.cum_sum().over("rank").alias(f"{kind}_ns"))
    begun = formed(trace).sort("rank", "ts_ns", "step", "end_ns", "kind").with_columns(sums)
    columns = [name for kind in STEP_KINDS for name in (f"num_{kind}", f"{kind}_ns")]
    upto = begun.sort("ts_ns").select("rank", "ts_ns", *columns)
    counted = stalls
    for moment, suffix in (("ts_ns", "_before"), ("end_ns", "_until")):
        sums_then = upto.rename({name: name + suffix for name in columns})
        counted = counted.sort(moment).join_asof(
            sums_then.rename({"ts_ns": f"begun{suffix}"}), left_on=moment,
            right_on=f"begun{suffix}", by="rank", allow_exact_matches=False,
            check_sortedness=False,
        )  # fmt: skip
    first = begun.sort("ts_ns").select("rank", "ts_ns", "step")
    counted = counted.sort("ts_ns").join_asof(first, on="ts_ns", by="rank", check_sortedness=False)
    return counted.with_columns(
        (pl.col(f"{name}_until").fill_null(0) - pl.col(f"{name}_before").fill_null(0)).alias(name)
        for name in columns
    )


def _with_preemptions(stalls: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add how often the request that stalled longest was preempted meanwhile."""
    preempted = events(trace).filter(pl.col("event") == "preempt")
    preempted = preempted.select(*REQUEST, preempted_ns="ts_ns")
    is_meanwhile = pl.col("preempted_ns").is_between("ts_ns", "end_ns")
    return (
        stalls.join(preempted, on=REQUEST, how="left")
        .group_by(*REQUEST, "last_step")
        .agg(
            pl.all().exclude("preempted_ns").first(),
            num_preempted=is_meanwhile.fill_null(value=False).sum(),
        )
    )


def _blame(row: Mapping[str, Any]) -> str:
    """What went on meanwhile, the longest first: `491 prefill steps took 145.1 s`."""
    kinds = sorted(STEP_KINDS, key=lambda kind: -row[f"{kind}_ns"])
    told = [
        f"{times(row[f'num_{kind}'], f'{kind} step')} took {duration(row[f'{kind}_ns'])}"
        for kind in kinds
        if row[f"num_{kind}"]
    ]
    return ", ".join(told) or "no step began meanwhile"
