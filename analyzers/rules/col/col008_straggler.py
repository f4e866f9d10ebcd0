"""straggler: one rank comes last to collectives again and again, and the others wait for it.

## What it finds
Collectives that nobody leaves before all have entered (all-reduce, all-gather, reduce-scatter,
all-to-all of one size, barrier), of which every rank recorded how long it was in, and in which all
were at one moment. All leave together, so the rank that was in it for the shortest time came last;
that needs no common clock. In a profile it is the device's kernel that enters and leaves, whenever
the host called it. The last rank was late by what the next-to-last one was in it longer. A rank is
reported that was late by `min_late_ns` or more at least `min_times`, which is in `min_share` of
those of the group's collectives to which any rank was so late, and whose lateness adds up to
`min_cost` of the time from the group's first to its last.

A broadcast is left out: there the others wait for what the root has to say.

## Why it hurts
Every step takes as long as its slowest rank. A rank that is late by a little in each layer slows
all of them down by that, in every step, and none of them looks busy.

## Example
    rank 3 was late to 612 of 640 allreduce collectives of tp, by 180.0 µs on average: 110.2 ms, 9%
    of the time

## How to fix
Look at what that rank does between collectives that others don't: more experts or tokens, a slower
clock or link, a host that is shared, logging. Balance the work, or move the extra work off the
critical path.

## References
Holistic Trace Analysis of Meta (communication and idle time between ranks); the stragglers of
PyTorch's flight recorder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration
from stepscope.analyzers.views.collectives import (
    GROUP,
    MEETING,
    blocking,
    have_met,
    meetings,
    of_group,
)
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.trace import Trace

FIX = "look at what that rank does between collectives that the others don't, and balance it"


@dataclass(frozen=True, slots=True)
class Straggler:
    """A rank comes last to most of its group's collectives, at a cost."""

    code: ClassVar[str] = "COL008"
    name: ClassVar[str] = "straggler"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("collectives.dur_ns", CLOCK)

    min_late_ns: int = 1_000
    min_times: int = 10
    min_share: float = 0.75
    min_cost: float = 0.02
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether two ranks recorded how long they were in a collective that holds all up."""
        return have_met(trace) and any_row(_in_it(trace).filter(pl.col("num_ranks") > 1))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per group and late rank, the most costly one first."""
        if self._num_late(trace) < self.min_times:
            return []
        # Of two that were in it equally long nobody came last.
        is_late = pl.col("late_ns") >= max(1, self.min_late_ns)
        met = _met(trace).with_columns(
            num_met=pl.len().over(GROUP),
            num_late=is_late.sum().over(GROUP),
            span_ns=(pl.col("end_ns").max() - pl.col("ts_ns").min()).over(GROUP),
        )
        is_worst = (pl.col("late_ns"), -pl.col("ts_ns"), "ordinal")
        late = (
            met.filter(is_late)
            .group_by(*GROUP, "rank")
            .agg(
                pl.col("step", "ordinal", "op").sort_by(*is_worst).last(),
                pl.col("ts_ns").min(), pl.col("end_ns").max(),
                pl.col("num_met", "num_late", "span_ns").first(),
                worst_ns=pl.col("late_ns").max(), cost_ns=pl.col("late_ns").sum(),
                waited_ns=pl.col("waited_ns").sum(), count=pl.len(),
            )
            .filter(
                pl.col("count") >= self.min_times,
                pl.col("count") >= self.min_share * pl.col("num_late"),
                pl.col("cost_ns") >= self.min_cost * pl.col("span_ns"),
            )
            .sort(-pl.col("cost_ns"), *GROUP, "rank")
        )  # fmt: skip
        return each(self, late.collect(), self._finding, FIX, self.limit)

    def _num_late(self, trace: Trace) -> int:
        """To how many collectives somebody may have been late, which is cheaper to say than who."""
        is_late = pl.col("late_ns") >= max(1, self.min_late_ns)
        return int(_in_it(trace).select(is_late.sum()).collect().item())

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        share = row["cost_ns"] / max(1, row["span_ns"])
        message = (
            f"rank {row['rank']} was late to {row['count']:,} of {row['num_met']:,} {row['op']} "
            f"collectives{of_group(row)}, by {duration(row['cost_ns'] / row['count'])} on "
            f"average: {duration(row['cost_ns'])}, {share:.0%} of the time"
        )
        evidence: Evidence = {
            "late": row["count"],
            "collectives": row["num_met"],
            "cost_ns": row["cost_ns"],
            "cost_share": round(share, 4),
            "worst_late_ns": row["worst_ns"],
            "others_waited_ns": row["waited_ns"],
            "worst in step": row["step"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _in_it(trace: Trace) -> pl.LazyFrame:
    """Each collective with num_ranks that said how long they were in it, and late_ns at most."""
    in_it = blocking(trace).select("rank", "dur_ns", at=pl.struct(MEETING).hash())
    lasted = in_it.filter(pl.col("dur_ns").is_not_null()).group_by("at")
    late_ns = pl.col("dur_ns").max() - pl.col("dur_ns").min()
    return lasted.agg(late_ns=late_ns, num_ranks=pl.col("rank").n_unique())


def _met(trace: Trace) -> pl.LazyFrame:
    """Each collective with the rank that came last: rank, late_ns, and what the others waited."""
    # Of two that were in it equally long, the first is none that is told.
    shortest_first = blocking(trace).sort("dur_ns")
    in_it, left = pl.col("dur_ns"), pl.col("ts_ns") + pl.col("dur_ns")
    return meetings(
        shortest_first,
        pl.col("rank", "step", "op").first(),
        pl.col("ts_ns").min(),
        end_ns=left.max(),
        late_ns=in_it.get(1, null_on_oob=True) - in_it.first(),
        waited_ns=in_it.sum() - in_it.min() * pl.len(),
        _num_open=in_it.null_count(),
        _overlap=pl.col("ts_ns").max() <= left.min(),
    ).filter("_overlap", pl.col("_num_open") == 0)
