"""clock-backwards: time ran backwards on a track, or the clocks of two ranks disagree.

## What it finds
Rows whose times contradict what must have come first:

- a step that began before the step that has the number before it
- a block that ended before it began, or began before it was dispatched
- a task that retired before it was submitted
- a request that left before it arrived
- a collective that was entered before the one with the ordinal before it, on one stream and group
- of a collective in which nobody can leave before all have entered: a rank that left before another
  entered. Then the clocks of the two ranks are apart by at least that much. Of profiles only those
  are compared that are known to be one collective; how the clocks were aligned is in the evidence,
  and clocks of several machines that differ are a warning, no error of the engine.

Rows of one kind are one finding per rank (or pair of ranks), placed at the worst. Differences up to
`tolerance_ns` within a rank, and up to `skew_ns` between two ranks, are taken for rounding:
profiles are written in microseconds, and the clocks of two devices are aligned by the collectives
in which they met, to within a few microseconds.

## Why it hurts
Every wait, overlap and cause that is computed from these times is wrong, and so is every other
finding about them.

## Example
    rank 1 left all_reduce 12 before rank 0 entered it, by 3.1 ms at worst, 40 times:
    their clocks are apart by at least that much

## How to fix
Take all times of a rank from one monotonic clock; convert the device's counter with one offset and
one frequency; measure the offset between ranks at start-up (a barrier, a few round trips).

## References
Clock domains in Perfetto's clock snapshots; `baseTimeNanoseconds` of torch.profiler; the
device-to-host anchor of hw-native-sys/simpler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.collectives import blocking
from stepscope.analyzers.views.known import CLOCK, knows
from stepscope.analyzers.views.requests import ENDS
from stepscope.ingest.derive.collectives.calls import MEETING, meetings
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = "take all times of a rank from one monotonic clock, and align the ranks' clocks at start-up"
_PLACE = ("rank", "step", "ts_ns", "end_ns", "request", "task", "core", "group")
# Of each of these, one row or one time has to come before another.
_ORDERED = (
    ("steps",),
    ("collectives",),
    ("core_spans.end_ns",),
    ("core_spans.dispatch_ns",),
    ("tasks.retired_ns",),
    ("lifecycle.request",),
)


@dataclass(frozen=True, slots=True)
class ClockBackwards:
    """Times contradict what must have come first."""

    code: ClassVar[str] = "TRC002"
    name: ClassVar[str] = "clock-backwards"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (CLOCK,)

    tolerance_ns: int = 1_000
    skew_ns: int = 10_000

    def applies(self, trace: Trace) -> bool:
        """Tell whether anything is recorded that has to come before something else."""
        return any(knows(trace, *times) for times in _ORDERED)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per kind and rank, then one per pair of ranks whose clocks disagree."""
        found: list[Finding] = []
        for what, rows in _contradictions(trace):
            found += self._within(what, rows)
        return found + self._between(trace)

    def _within(self, what: str, rows: pl.LazyFrame) -> list[Finding]:
        worst = pl.all().exclude("rank").sort_by("back_ns", -pl.col("ts_ns"), "subject").last()
        ranks = (
            rows.filter(pl.col("back_ns") > self.tolerance_ns)
            .group_by("rank")
            .agg(worst, count=pl.len())
            .sort("rank")
        )
        return [self._backwards(what, row) for row in ranks.collect().iter_rows(named=True)]

    def _backwards(self, what: str, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{row['subject']} {what}, by {duration(row['back_ns'])} at worst, "
            f"{times(row['count'], 'time')}"
        )
        evidence: Evidence = {"worst": row["subject"], "worst_back_ns": row["back_ns"]}
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])

    def _between(self, trace: Trace) -> list[Finding]:
        pairs = _disagreements(trace, self.skew_ns)
        pair = ("rank", "late_rank")
        worst = pl.all().exclude(pair).sort_by("apart_ns", -pl.col("ts_ns"), "ordinal", "op").last()
        rows = pairs.group_by(pair).agg(worst, count=pl.len()).sort(pair).collect()
        return [self._apart(row, trace) for row in rows.iter_rows(named=True)]

    def _apart(self, row: Mapping[str, Any], trace: Trace) -> Finding:
        message = (
            f"rank {row['rank']} left {row['op']} {row['ordinal']} before rank {row['late_rank']} "
            f"entered it, by {duration(row['apart_ns'])} at worst, {times(row['count'], 'time')}: "
            f"their clocks are apart by at least that much"
        )
        evidence: Evidence = {
            "collective": f"{row['op']} {row['ordinal']}",
            "entered last": f"rank {row['late_rank']}",
            "worst_apart_ns": row["apart_ns"],
            "collectives": row["count"],
            **_aligned(trace, row["rank"], row["late_rank"]),
        }
        at = {"rank": row["rank"], "step": row["step"], "ts_ns": row["ts_ns"]}
        found = finding(self, message, FIX, at=at, evidence=evidence, count=row["count"])
        return replace(found, severity=Severity.WARNING) if row["is_inferred"] else found


def _contradictions(trace: Trace) -> Iterator[tuple[str, pl.LazyFrame]]:
    """Each kind: how it reads after its subject, and rows with rank, subject, place, back_ns."""
    steps = trace.steps.filter(pl.col("ts_ns").is_not_null(), pl.col("step").is_not_null())
    yield (
        "began before the step before it",
        _backwards_in_order(steps, ("rank",), "step", pl.format("step {}", "step")),
    )
    spans = trace.core_spans
    yield (
        "ended before it began",
        _before(spans, "end_ns", "ts_ns", pl.format("a block of task {}", "task")),
    )
    yield (
        "began before it was dispatched",
        _before(spans, "ts_ns", "dispatch_ns", pl.format("a block of task {}", "task")),
    )
    yield (
        "retired before it was submitted",
        _before(trace.tasks, "retired_ns", "ts_ns", pl.format("task {}", "task")),
    )
    yield (
        "left before it arrived",
        _before(_requests(trace), "left_ns", "ts_ns", pl.format("request {}", "request")),
    )
    track = ("rank", "stream", "group")
    recorded = trace.collectives.drop_nulls(["ts_ns", "ordinal"])
    yield (
        "was entered before the one before it",
        _backwards_in_order(recorded, track, "ordinal", pl.format("{} {}", "op", "ordinal")),
    )


def _before(rows: pl.LazyFrame, late: str, early: str, subject: pl.Expr) -> pl.LazyFrame:
    """Rows whose `late` is before their `early`."""
    back = pl.col(early).clip(-FAR_NS, FAR_NS) - pl.col(late).clip(-FAR_NS, FAR_NS)
    known = [name for name in _PLACE if name in rows.collect_schema().names()]
    # Names are made of the few rows that are told, not of all.
    return rows.filter(back > 0).select(*known, back_ns=back, subject=subject)


def _backwards_in_order(
    rows: pl.LazyFrame, track: tuple[str, ...], order: str, subject: pl.Expr
) -> pl.LazyFrame:
    """Rows of a track that are earlier than an earlier one of their order."""
    if not _goes_back(rows, track, order):
        rows = rows.clear()
    latest = pl.col("ts_ns").cum_max().shift(1)
    return (
        rows.with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS))
        .group_by(*track, order)
        .agg(pl.col("ts_ns").min(), subject=subject.sort().first(), step_=pl.col("step").min())
        .sort(order)
        .with_columns(back_ns=latest.over(track) - pl.col("ts_ns"))
        .filter(pl.col("back_ns") > 0)
        .select("rank", "ts_ns", "back_ns", "subject", step="step_")
    )


def _goes_back(rows: pl.LazyFrame, track: tuple[str, ...], order: str) -> bool:
    """Whether any row may be, which is cheaper to say than which: mostly none is."""
    known = rows.select(
        order, ts_ns=pl.col("ts_ns").clip(-FAR_NS, FAR_NS), at=pl.struct(track).hash()
    )
    is_back = (pl.col("ts_ns").diff() < 0).over("at")
    return bool(known.sort(order).select(is_back.any()).collect().item())


def _requests(trace: Trace) -> pl.LazyFrame:
    """Requests that arrived and ended."""
    event, ts_ns = pl.col("event"), pl.col("ts_ns")
    return (
        trace.lifecycle.group_by("rank", "request")
        .agg(
            pl.col("step").filter(event == "arrive").min(),
            left_ns=ts_ns.filter(event.is_in(ENDS)).max(),
            ts_ns=ts_ns.filter(event == "arrive").min(),
        )
        .drop_nulls(["left_ns", "ts_ns"])
    )


def _aligned(trace: Trace, *ranks: int) -> Evidence:
    """What the reader of several profiles knows of these ranks' clocks, and how sure it is."""
    clocks = trace.manifest.config.get("clocks")
    known = clocks if isinstance(clocks, dict) else {}
    told = {rank: known.get(str(rank)) for rank in ranks}
    return {f"clock of rank {rank}": _how_sure(each) for rank, each in told.items() if each}


def _how_sure(clock: Mapping[str, Any]) -> str:
    if clock.get("why_not"):
        return f"left as it is: {clock['why_not']}"
    moved = duration(clock["moved_ns"]) if clock["moved_ns"] else "nothing"
    unless_ns = clock.get("unless_apart_ns")
    unless = "" if unless_ns is None else f", unless these are {duration(unless_ns)} or more apart"
    return (
        f"moved by {moved}: {clock['collectives']:,} collectives end within "
        f"{duration(clock['residual_ns'])}, paired by {clock['paired_by']}{unless}"
    )


def _disagreements(trace: Trace, skew_ns: int) -> pl.LazyFrame:
    """Per collective, the rank that left first and the one that entered last, when they cross."""
    left_ns = (pl.col("ts_ns") + pl.col("dur_ns")).clip(-FAR_NS, FAR_NS)
    known = blocking(trace).with_columns(left_ns=left_ns, at=pl.struct(MEETING).hash())
    apart_ns = pl.col("ts_ns").max() - pl.col("left_ns").min()
    crossed = known.group_by("at").agg(apart_ns=apart_ns).filter(pl.col("apart_ns") > skew_ns)
    first = ("left_ns", "rank")
    return (
        meetings(
            known.join(crossed.select("at").collect().lazy(), on="at", how="semi"),
            pl.col("rank", "op").sort_by(first).first(),
            pl.col("step").min(),
            late_rank=pl.col("rank").sort_by("ts_ns", "rank").last(),
            ts_ns=pl.col("left_ns").min(),
            apart_ns=apart_ns,
            is_inferred=pl.col("inferred").is_not_null().any(),
            num_kinds=pl.col("kind").n_unique(),
            num_sizes=pl.col("num_elements").drop_nulls().n_unique(),
        )
        # Where ranks diverge, what they do under one number is not one collective.
        .filter(pl.col("num_kinds") == 1, pl.col("num_sizes") <= 1)
        .filter(pl.col("rank") != pl.col("late_rank"))
        .drop("num_kinds", "num_sizes")
    )
