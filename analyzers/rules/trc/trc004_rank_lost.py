"""rank-lost: a rank recorded nothing any more while the others went on.

## What it finds
Ranks whose last sign of life, a step or a collective, came before the end of the trace by more than
`max_gaps` times their own longest silence until then; or by `min_share` of the trace, in which the
others gave more than `max_missed` times as many signs as in any silence of the rank until then: a
lull in which nobody did anything is no measure. And ranks that the manifest names and that recorded
nothing at all. A rank with fewer than `min_signs` signs has no rhythm to go by, and is judged by
that of the others. A data-parallel rank whose own requests had all ended by then had nothing to do.

Profiles do not end at one moment: there a silence of less than `min_share` of the whole says
nothing, nor does any of a rank whose clock could not be compared with the others'.

## Why it hurts
A rank that died, hung or lost its recorder. In the first two cases the others soon hang in a
collective that it does not join (COL002); what they record until their timeout says nothing about
the cause. In the third, everything that compares ranks compares too little.

## Example
    rank 3 stopped at step 812, 4.2 s before the others did; its longest silence until then
    was 31.0 ms

## How to fix
Look at the last rows of the lost rank, and at its process: killed, out of memory, or alive and
stuck. `stepscope info` says whether its recording was closed.

## References
PyTorch's NCCL flight recorder, which is read for the rank that did not get as far as the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration
from stepscope.analyzers.views.declared import is_one_run
from stepscope.analyzers.views.known import CLOCK
from stepscope.analyzers.views.requests import requests
from stepscope.ingest.schema import TABLES
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = "look at the last rows of that rank, and whether its process died, hung or stopped recording"


@dataclass(frozen=True, slots=True)
class RankLost:
    """A rank was silent until the end for more than `max_gaps` of its longest silences."""

    code: ClassVar[str] = "TRC004"
    name: ClassVar[str] = "rank-lost"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (CLOCK,)

    max_gaps: float = 5.0
    max_missed: float = 3.0
    min_share: float = 0.2
    min_signs: int = 3

    def applies(self, trace: Trace) -> bool:
        """Tell whether there are several ranks of one run: one alone has no others that go on."""
        are_several = len(trace.manifest.ranks) > 1 or len(_with_rows(trace)) > 1
        return are_several and is_one_run(trace) and _any_comparable(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank that was lost, in order of rank."""
        ranks = _ranks(trace, self.min_signs).collect()
        if ranks.is_empty():
            return []
        found = [self._stopped(row, trace) for row in ranks.filter(self._is_lost()).to_dicts()]
        recorded = set(ranks["rank"].to_list())
        silent = sorted(set(trace.manifest.ranks) - recorded - _with_rows(trace))
        return found + [self._silent(rank) for rank in silent]

    def _is_lost(self) -> pl.Expr:
        silent_ns, is_long = (
            pl.col("silent_ns"),
            pl.col("silent_ns") >= self.min_share * pl.col("span_ns"),
        )
        by_time = silent_ns > (self.max_gaps * pl.col("gap_ns")).clip(lower_bound=1)
        by_signs = pl.col("missed") > self.max_missed * pl.col("gap_signs").clip(lower_bound=1)
        is_silent = pl.when("is_profile").then(False).otherwise(by_time) | (by_signs & is_long)
        had_nothing = pl.col("idle_ns") <= pl.col("ts_ns") + pl.col("gap_ns")
        return is_silent & ~had_nothing.fill_null(value=False)

    def _stopped(self, row: Mapping[str, Any], trace: Trace) -> Finding:
        step = row["step"]
        where = "stopped" if step is None else f"stopped at step {step}"
        message = (
            f"rank {row['rank']} {where}, {duration(row['silent_ns'])} before the others did; "
            f"its longest silence until then was {duration(row['gap_ns'])}"
        )
        evidence: Evidence = {
            "last step": step,
            "silent_ns": row["silent_ns"],
            "longest_silence_ns": row["gap_ns"],
            "last step of any rank": row["last_step"],
            "was closed": "no" if str(row["rank"]) in (trace.manifest.recovered or {}) else None,
        }
        return finding(self, message, FIX, at=row, evidence=evidence)

    def _silent(self, rank: int) -> Finding:
        message = f"rank {rank} is named by the manifest and recorded nothing"
        return finding(self, message, FIX, at={"rank": rank})


def _ranks(trace: Trace, min_signs: int) -> pl.LazyFrame:
    """Per rank, when two or more are there: its last sign, and how long it was silent at most.

    Silences are told in time, and in signs that the others gave during them.
    """
    own = pl.int_range(pl.len()).over("rank")
    signs = _signs(trace).sort("ts_ns", "rank").with_columns(
        others=pl.int_range(pl.len()) - own, num=pl.len(),
        end_ns=pl.col("ts_ns").max(), span_ns=pl.col("ts_ns").max() - pl.col("ts_ns").min(),
        last_step=pl.col("step").max(),
    )  # fmt: skip
    of_all = pl.col("end_ns", "span_ns", "last_step").first()
    ranks = signs.group_by("rank").agg(
        of_all,
        gap_ns=pl.col("ts_ns").diff().max().fill_null(0),
        gap_signs=pl.col("others").diff().max().fill_null(0),
        missed=pl.col("num").first() - pl.len() - pl.col("others").last(),
        num_signs=pl.len(),
        step=pl.col("step").max(),
        ts_ns=pl.col("ts_ns").last(),
        is_profile=pl.col("is_inferred").all(),
    )
    has_rhythm = pl.col("num_signs") >= min_signs
    return (
        ranks.with_columns(
            pl.when(has_rhythm).then(name).otherwise(pl.col(name).max()).alias(name)
            for name in ("gap_ns", "gap_signs")
        )
        .with_columns(silent_ns=pl.col("end_ns") - pl.col("ts_ns"))
        .join(_idle_since(trace), on="rank", how="left")
        .sort("rank")
    )


def _idle_since(trace: Trace) -> pl.LazyFrame:
    """When the last request of each rank that has any ended; null where one never did."""
    all_ended = pl.when(pl.col("outcome").is_not_null().all()).then(pl.col("ended_ns").max())
    return requests(trace).group_by("rank").agg(idle_ns=all_ended)


def _signs(trace: Trace) -> pl.LazyFrame:
    """When a rank began or ended a step or a collective; each moment once."""
    moments = []
    for table in (trace.steps, trace.collectives):
        began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
        ended = began + pl.col("dur_ns").clip(0, FAR_NS)
        is_inferred = pl.col("inferred").is_not_null()
        moments += [
            table.select("rank", "step", ts_ns=moment, is_inferred=is_inferred)
            for moment in (began, ended)
        ]
    known = pl.concat(moments).drop_nulls(["rank", "ts_ns"])
    return (
        known.filter(~pl.col("rank").is_in(sorted(_apart(trace))))
        .group_by("rank", "ts_ns")
        .agg(pl.col("step").max(), pl.col("is_inferred").all())
    )


def _apart(trace: Trace) -> set[int]:
    """Ranks of which the time cannot be compared with the others'."""
    clocks = trace.manifest.config.get("clocks")
    known = clocks if isinstance(clocks, dict) else {}
    return {
        int(rank)
        for rank, clock in known.items()
        if clock.get("why_not") and not clock.get("is_dated")
    }


def _any_comparable(trace: Trace) -> bool:
    """Whether two ranks are on one clock, or one that the manifest names recorded nothing."""
    recorded = _with_rows(trace)
    return len(recorded - _apart(trace)) > 1 or bool(set(trace.manifest.ranks) - recorded)


def _with_rows(trace: Trace) -> set[int]:
    """Ranks that recorded anything."""
    ranks = (
        pl.concat([trace.table(table.name).select("rank") for table in TABLES]).unique().collect()
    )
    return set(ranks["rank"].to_list())
