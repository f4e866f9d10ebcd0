"""straggler: the same ranks come last to collectives again and again, and the others wait for them.

## What it finds
Collectives that no rank leaves before all have entered (all-reduce, all-gather, reduce-scatter,
all-to-all of one size, barrier). Every rank must have recorded how long it was inside, and all
ranks must have been inside at the same time. All leave together, so the rank with the shortest time
inside came last; that needs no common clock. In a profile, the device's kernel counts, not the
host's call. The last rank is late by the difference between the next-to-last rank's time inside and
its own.

A rank is reported if it was late by at least `min_late_ns` at least `min_times`; if these are at
least `min_share` of the group's collectives to which any rank was that late; and if the lateness
adds up to at least `min_cost` of the time from the group's first collective to its last.

When several ranks are equally slow, none of them is last on its own. So the last two ranks, the
last three and so on are judged in the same way, as a set that is late by the gap between its first
rank and the rank before it. For each group, only the set whose lateness costs most is reported, and
only if it costs more than any single rank.

`min_late_ns` is 1 µs, because profilers and device clocks resolve no less. The cost is judged as a
share of the run (`min_cost`).

Broadcasts are not judged: there the other ranks wait for the root's data.

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
from stepscope.analyzers.views.collectives import blocking, have_met, of_group
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.derive.collectives.calls import GROUP, MEETING, meetings
from stepscope.ingest.trace import Trace

NAMED = 8
FIX = "look at what that rank does between collectives that the others don't, and balance it"

FIX_SEVERAL = FIX.replace("that rank does", "those ranks do")


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
        """One finding per group and late rank or set of ranks, the most costly one first."""
        if self._num_late(trace) < self.min_times:
            return []
        met = _met(trace)
        of_group = met.group_by(GROUP).agg(
            num_met=pl.len(), span_ns=pl.col("end_ns").max() - pl.col("ts_ns").min()
        )
        # Of ranks that were inside equally long, none came last.
        is_late = pl.col("late_ns") >= max(1, self.min_late_ns)
        is_worst = (pl.col("late_ns"), -pl.col("ts_ns"), "ordinal")
        late = (
            met.explode("late_ns", "late_ranks", "num_ranks", "waited_ns", empty_as_null=True)
            .filter(is_late)
            .with_columns(num_late=pl.len().over(*GROUP, "num_ranks"))
            .group_by(*GROUP, "num_ranks", "late_ranks")
            .agg(
                pl.col("step", "ordinal", "op").sort_by(*is_worst).last(),
                pl.col("ts_ns").min(), pl.col("end_ns").max(), pl.col("num_late").first(),
                worst_ns=pl.col("late_ns").max(), cost_ns=pl.col("late_ns").sum(),
                waited_ns=pl.col("waited_ns").sum(), count=pl.len(),
            )
            .join(of_group, on=GROUP)
            .filter(
                pl.col("count") >= self.min_times,
                pl.col("count") >= self.min_share * pl.col("num_late"),
                pl.col("cost_ns") >= self.min_cost * pl.col("span_ns"),
            )
            .sort(-pl.col("cost_ns"), *GROUP, "num_ranks")
            # Of sets of several ranks only the costliest, if no single rank costs as much.
            .filter((pl.col("num_ranks") == 1) | (pl.int_range(pl.len()).over(GROUP) == 0))
        )  # fmt: skip
        rows = _named(trace, late.collect()).sort(-pl.col("cost_ns"), *GROUP, "rank")
        return each(self, rows, self._finding, FIX, self.limit)

    def _num_late(self, trace: Trace) -> int:
        """How many collectives any rank may have been late to; cheaper than to find which rank."""
        is_late = pl.col("late_ns") >= max(1, self.min_late_ns)
        return int(_in_it(trace).select(is_late.sum()).collect().item())

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        share = row["cost_ns"] / max(1, row["span_ns"])
        message = (
            f"{_ranks(row['ranks'])} late to {row['count']:,} of {row['num_met']:,} {row['op']} "
            f"collectives{of_group(row)}, by {duration(row['cost_ns'] / row['count'])} on "
            f"average: {duration(row['cost_ns'])}, {share:.0%} of the time"
        )
        evidence: Evidence = {
            **({"ranks": ", ".join(map(str, row["ranks"]))} if len(row["ranks"]) > 1 else {}),
            "late": row["count"],
            "collectives": row["num_met"],
            "cost_ns": row["cost_ns"],
            "cost_share": round(share, 4),
            "worst_late_ns": row["worst_ns"],
            "others_waited_ns": row["waited_ns"],
            "worst in step": row["step"],
        }
        fix = FIX if len(row["ranks"]) == 1 else FIX_SEVERAL
        return finding(self, message, fix, at=row, evidence=evidence, count=row["count"])


def _in_it(trace: Trace) -> pl.LazyFrame:
    """Each collective with num_ranks that said how long they were in it, and late_ns at most."""
    in_it = blocking(trace).select("rank", "dur_ns", at=pl.struct(MEETING).hash())
    lasted = in_it.filter(pl.col("dur_ns").is_not_null()).group_by("at")
    late_ns = pl.col("dur_ns").max() - pl.col("dur_ns").min()
    return lasted.agg(late_ns=late_ns, num_ranks=pl.col("rank").n_unique())


def _met(trace: Trace) -> pl.LazyFrame:
    """Each collective with the lateness of its last rank, of its last two ranks, and so on.

        late_ns, waited_ns (by the other ranks), num_ranks and late_ranks (one number that
    identifies the set of ranks) are lists with one element less than there are ranks.
    """
    in_it = pl.col("dur_ns")
    num_last = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
    waited_ns = in_it.sum() - in_it.cum_sum() - in_it * (pl.len().cast(pl.Int64) - num_last)
    return meetings(
        blocking(trace).sort("dur_ns"),
        pl.col("step", "op").first(),
        pl.col("ts_ns").min(),
        end_ns=(pl.col("ts_ns") + in_it).max(),
        late_ns=in_it.diff().slice(1),
        late_ranks=(pl.col("rank").hash() % 2**40).cum_sum().head(pl.len() - 1),
        num_ranks=num_last.head(pl.len() - 1),
        waited_ns=waited_ns.head(pl.len() - 1),
        _num_open=in_it.null_count(),
        _overlap=pl.col("ts_ns").max() <= (pl.col("ts_ns") + in_it).min(),
    ).filter("_overlap", pl.col("_num_open") == 0)


def _named(trace: Trace, late: pl.DataFrame) -> pl.DataFrame:
    """Add ranks, the last of the collective to which they were latest, and rank, their first."""
    at = late.lazy().select(*MEETING, num_last="num_ranks", worst=pl.int_range(pl.len()))
    last = (
        blocking(trace)
        .join(at, on=MEETING)
        .sort("dur_ns")
        .group_by("worst", "num_last")
        .agg(pl.col("rank"))
        .select("worst", ranks=pl.col("rank").list.head(pl.col("num_last")).list.sort())
        .sort("worst")
        .collect()
    )
    return late.with_columns(last["ranks"], rank=last["ranks"].list.first())


def _ranks(ranks: list[int]) -> str:
    """`rank 3 was`, `ranks 1, 2 and 3 were`: at most eight by number."""
    if len(ranks) == 1:
        return f"rank {ranks[0]} was"
    if len(ranks) > NAMED:
        return f"{len(ranks):,} ranks ({', '.join(map(str, ranks[:NAMED]))}, ...) were"
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]} were"
