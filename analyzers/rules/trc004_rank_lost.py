"""rank-lost: a rank recorded nothing any more while the others went on.

## What it finds
Ranks whose last sign of life, a step or a collective, came before the end of the trace by more than
`max_gaps` times their own longest silence until then; and ranks that the manifest names and that
recorded nothing at all. A rank with fewer than `min_signs` signs has no rhythm to go by, and is
judged by that of the others.

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
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.declared import is_one_run
from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.occupancy import FAR_NS
from stepscope.analyzers.rule import finding
from stepscope.analyzers.wording import duration
from stepscope.ingest.schema import TABLES

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = "look at the last rows of that rank, and whether its process died, hung or stopped recording"


@dataclass(frozen=True, slots=True)
class RankLost:
    """A rank was silent until the end for more than `max_gaps` of its longest silences."""

    code: ClassVar[str] = "TRC004"
    name: ClassVar[str] = "rank-lost"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ()

    max_gaps: float = 5.0
    min_signs: int = 3

    def applies(self, trace: Trace) -> bool:
        """Tell whether there are several ranks of one run: one alone has no others that go on."""
        are_several = len(trace.manifest.ranks) > 1 or len(_with_rows(trace)) > 1
        return are_several and is_one_run(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank that was lost, in order of rank."""
        ranks = _ranks(trace, self.min_signs).collect()
        if ranks.is_empty():
            return []
        lost = ranks.filter(
            pl.col("silent_ns") > (self.max_gaps * pl.col("gap_ns")).clip(lower_bound=1)
        )
        found = [self._stopped(row, trace) for row in lost.iter_rows(named=True)]
        recorded = set(ranks["rank"].to_list())
        silent = sorted(set(trace.manifest.ranks) - recorded - _with_rows(trace))
        return found + [self._silent(rank) for rank in silent]

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
    """Per rank, when two or more are there: its last sign, and how long it was silent at most."""
    gap = pl.col("ts_ns").sort().diff().max().fill_null(0)
    ranks = (
        _signs(trace)
        .group_by("rank")
        .agg(
            gap_ns=gap,
            num_signs=pl.len(),
            step=pl.col("step").max(),
            ts_ns=pl.col("ts_ns").max(),
        )
    )
    has_rhythm = pl.col("num_signs") >= min_signs
    return (
        ranks.with_columns(
            last_step=pl.col("step").max(),
            end_ns=pl.col("ts_ns").max(),
            gap_ns=pl.when(has_rhythm).then("gap_ns").otherwise(pl.col("gap_ns").max()),
        )
        .with_columns(silent_ns=pl.col("end_ns") - pl.col("ts_ns"))
        .sort("rank")
    )


def _signs(trace: Trace) -> pl.LazyFrame:
    """When a rank began or ended a step or a collective."""
    moments = []
    for table in (trace.steps, trace.collectives):
        began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
        ended = began + pl.col("dur_ns").clip(0, FAR_NS)
        moments += [table.select("rank", "step", ts_ns=moment) for moment in (began, ended)]
    return pl.concat(moments).drop_nulls(["rank", "ts_ns"])


def _with_rows(trace: Trace) -> set[int]:
    """Ranks that recorded anything."""
    ranks = (
        pl.concat([trace.table(table.name).select("rank") for table in TABLES]).unique().collect()
    )
    return set(ranks["rank"].to_list())
