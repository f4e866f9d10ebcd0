"""decode-stalled: a request that was in the middle of its output got no token for a long time.

## What it finds
For each request, the longest time between two of its tokens. It is a stall when it is longer than
`min_gap_ns`, which is when a reader notices, and than `max_ratio` times the median gap of its rank.
The first limit is about readers, so it is the same for fast and slow engines; the second judges
each engine by its own speed.
Buckets take turns: where the engine said that another one ran meanwhile, it is a stall from
`max_turn_ratio` on. Requests whose stalls end in one step are one finding, placed at the longest.

What the request waited for is told: that it had been preempted, for how much of that time, and the
steps in between by kind. Of steps that overlap each counts for the time in which none before it
ran. An engine that schedules ahead preempts before it has the last token of what it preempts: that
is told as well.

## Why it hurts
A user watches text stop in the middle of a sentence. The median and even P99 of the time between
tokens hardly show it: a request of 500 tokens has one such gap, so judge by the maximum.

## Example
    req-00 and 233 others got no token for up to 15.4 s (steps 4 to 512): 508 prefill steps took
    15.4 s, 1 mixed step took 38.3 ms

    req-30 got no token for 1.9 s (steps 71 to 104): preempted 1 time, it waited 1.7 s to be
    resumed; meanwhile 32 decode steps took 1.7 s

## How to fix
When prefill steps are to blame: hold back budget for the decodes that are under way (a token for
each), and cap how much of a step one prompt may take. When it was preempted: choose victims by age,
and see KVB003 and KVB004. When other decodes are to blame: let every request run before any runs
again.

## References
The report on mixed prefill and decode batches in ATOM, where prompts took every step until the last
was done; Sarathi-Serve (OSDI 2024) on generation stalls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.batches import formed, own_times, tokens
from stepscope.analyzers.views.declared import mixes
from stepscope.analyzers.views.interval_union import covered, merged
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.analyzers.views.requests import REQUEST, events, waits
from stepscope.analyzers.views.token_gaps import token_gaps
from stepscope.ingest.schema import STEP_KINDS
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "hold back budget for decodes under way and cap a prompt's share of a step; "
    "do not preempt the old for the young"
)
FIX_UNMIXED = "run a decode step after some prefill steps, whatever waits"
FIX_PREEMPTED = "choose victims by age, the youngest first, and preempt only when blocks are short"
FIX_DECODES = "let every request that is in the middle of its output run before any runs again"


@dataclass(frozen=True, slots=True)
class DecodeStalled:
    """A gap between two tokens of a request is `max_ratio` times what is usual, and long.

    It is `max_turn_ratio` times where another bucket had its turn.
    """

    code: ClassVar[str] = "STV004"
    name: ClassVar[str] = "decode-stalled"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("outputs", "steps", CLOCK)

    max_ratio: float = 50.0
    max_turn_ratio: float = 100.0
    min_gap_ns: int = SECOND
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any request got two tokens."""
        return any_row(tokens(trace).group_by(REQUEST).len().filter(pl.col("len") > 1))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per step that ended stalls, the longest stall first."""
        gaps = token_gaps(trace).collect().lazy()
        long = gaps.filter(pl.col("gap_ns") > self.min_gap_ns)
        if not any_row(long):
            return []
        usual = gaps.filter(pl.col("gap_ns") > 0).group_by("rank")
        median = usual.agg(median_ns=pl.col("gap_ns").median())
        took_turns = pl.when("took_turns").then(self.max_turn_ratio).otherwise(self.max_ratio)
        is_stall = pl.col("gap_ns") > took_turns * pl.col("median_ns")
        stalls = _longest(
            _with_turns(long, trace).join(median, on="rank", how="left").filter(is_stall)
        )
        longest = pl.all().exclude("rank", "last_step").sort_by("gap_ns", "request").last()
        ends = stalls.group_by("rank", "last_step").agg(longest, count=pl.len())
        blamed = _with_preemptions(_with_steps(ends, trace), trace).with_columns(
            is_unmixed=pl.lit(mixes(trace) is False)
        )
        rows = blamed.sort(-pl.col("gap_ns"), "rank", "last_step", nulls_last=True).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        others = row["count"] - 1
        who = row["request"] + (f" and {times(others, 'other')}" if others else "")
        message = (
            f"{who} got no token for {'up to ' * bool(others)}{duration(row['gap_ns'])} "
            f"(steps {row['step']} to {row['last_step']}): {_preempted(row)}{_blame(row)}"
        )
        evidence: Evidence = {
            "gap_ns": row["gap_ns"],
            "median_gap_ns": row["median_ns"],
            "requests": row["count"],
            "times preempted": row["num_preempted"],
            "preempted_ns": row["preempted_ns"] or None,
            **{f"{kind} steps": row[f"num_{kind}"] for kind in STEP_KINDS if row[f"num_{kind}"]},
            **{f"{kind}_ns": row[f"{kind}_ns"] for kind in STEP_KINDS if row[f"{kind}_ns"]},
        }
        return finding(self, message, _fix(row), at=row, evidence=evidence, count=row["count"])


def _longest(gaps: pl.LazyFrame) -> pl.LazyFrame:
    order = ("gap_ns", "ts_ns", "last_step")
    return (
        gaps.group_by(REQUEST)
        .agg(pl.col(*order, "from_ns").sort_by(order).last(), pl.col("median_ns").first())
        .rename({"ts_ns": "end_ns", "from_ns": "ts_ns"})
    )


def _with_steps(stalls: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add the step that began the stall, and how many steps of each kind began in it and took."""
    steps = own_times(formed(trace)).collect().lazy()
    first = steps.sort("ts_ns").select("rank", "ts_ns", "step")
    begun = stalls.sort("ts_ns").join_asof(first, on="ts_ns", by="rank", check_sortedness=False)
    told = begun.with_columns(from_ns="ts_ns", to_ns="end_ns")
    for kind in STEP_KINDS:
        of_kind = steps.filter(pl.col("kind") == kind)
        told = _with_number(covered(told, merged(of_kind), f"{kind}_ns"), of_kind, f"num_{kind}")
    return told.drop("from_ns", "to_ns")


def _with_number(stalls: pl.LazyFrame, steps: pl.LazyFrame, into: str) -> pl.LazyFrame:
    """Add `into`: how many of `steps` began in each stall."""
    number = steps.sort("ts_ns").select(
        "rank", "ts_ns", number=pl.int_range(1, pl.len() + 1).over("rank")
    )
    for moment in ("from_ns", "to_ns"):
        upto = number.rename({"ts_ns": f"_{moment}", "number": f"_num_{moment}"})
        stalls = stalls.sort(moment).join_asof(
            upto, left_on=moment, right_on=f"_{moment}", by="rank", allow_exact_matches=False,
            check_sortedness=False,
        )  # fmt: skip
    num = pl.col("_num_to_ns").fill_null(0) - pl.col("_num_from_ns").fill_null(0)
    helpers = ("_from_ns", "_to_ns", "_num_from_ns", "_num_to_ns")
    return stalls.with_columns(num.alias(into)).drop(helpers, strict=False)


def _with_turns(gaps: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add took_turns: whether the engine said in the gap that another bucket ran."""
    of_requests = (pl.col("subject_kind") == "request") & (pl.col("resource") == "bucket")
    told = trace.decisions.filter(of_requests, pl.col("ts_ns").is_not_null())
    told = told.select("rank", request="subject", told_ns="ts_ns").sort("told_ns")
    found = gaps.sort("ts_ns").join_asof(
        told, left_on="ts_ns", right_on="told_ns", by=list(REQUEST), check_sortedness=False
    )
    took_turns = (pl.col("told_ns") >= pl.col("from_ns")).fill_null(value=False)
    return found.with_columns(took_turns=took_turns)


def _with_preemptions(stalls: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add how often the request that stalled longest was out in the gap, preempted, and for long.

    It may have been preempted before the gap: what was under way then came as its last token.
    """
    out = waits(trace).select(*REQUEST, out_ns="from_ns", back_ns="to_ns")
    preempted = (
        events(trace)
        .filter(pl.col("event") == "preempt")
        .select(*REQUEST, out_ns="ts_ns")
        .join(out, on=[*REQUEST, "out_ns"], how="left")
        .with_columns(back_ns=pl.coalesce("back_ns", "out_ns"))
    )
    is_meanwhile = (pl.col("out_ns") <= pl.col("end_ns")) & (pl.col("back_ns") >= pl.col("ts_ns"))
    until_ns, since_ns = (
        pl.min_horizontal("back_ns", "end_ns"),
        pl.max_horizontal("out_ns", "ts_ns"),
    )
    lasted = pl.when(is_meanwhile).then((until_ns - since_ns).clip(0))
    return (
        stalls.join(preempted, on=REQUEST, how="left")
        .group_by(*REQUEST, "last_step")
        .agg(
            pl.all().exclude("out_ns", "back_ns").first(),
            num_preempted=is_meanwhile.fill_null(value=False).sum(),
            preempted_ns=lasted.sum(),
        )
    )


def _preempted(row: Mapping[str, Any]) -> str:
    """That it was preempted: `preempted 1 time, it waited 1.7 s to be resumed; meanwhile `."""
    if not row["num_preempted"]:
        return ""
    who = row["request"] if row["count"] > 1 else "it"
    often = times(row["num_preempted"], "time")
    waited = duration(row["preempted_ns"])
    return f"preempted {often}, {who} waited {waited} to be resumed; meanwhile "


def _fix(row: Mapping[str, Any]) -> str:
    """What to do about what took most of the stall: it was out, others decoded, or prompts ran."""
    if 2 * (row["preempted_ns"] or 0) > row["gap_ns"]:
        return FIX_PREEMPTED
    if 2 * row["decode_ns"] > row["gap_ns"]:
        return FIX_DECODES
    return FIX_UNMIXED if row["is_unmixed"] else FIX


def _blame(row: Mapping[str, Any]) -> str:
    """What went on meanwhile, the longest first: `491 prefill steps took 145.1 s`.

    Of steps without durations only the number is known.
    """
    kinds = sorted(STEP_KINDS, key=lambda kind: -row[f"{kind}_ns"])
    steps = [
        times(row[f"num_{kind}"], f"{kind} step")
        + (f" took {duration(row[f'{kind}_ns'])}" if row[f"{kind}_ns"] else "")
        for kind in kinds
        if row[f"num_{kind}"]
    ]
    return ", ".join(steps) or "no step began meanwhile"
