"""rank-missing: a rank never came to a collective in which others wait.

## What it finds
Collectives that never ended on some rank, and that a rank which should join (`expected_ranks`; else
every rank that uses the group) never entered. Only ranks of the manifest count: of a rank that was
not recorded nothing is known. One finding per group and missing rank, with what that rank did last.

A collective that was inferred from a profile may just have been cut off before its end: with such
ones alone the rule is not applicable.

## Why it hurts
Nobody can go on: the others sit in the collective until a timeout takes the whole job down, and the
stack traces of those who wait name everything but the cause. That is in the rank that did not come:
it refused a command, raised, took another branch, or died.

## Example
    rank 1 never came to operation 10 of ep, broadcast of 1 uint32 (prefill: length, slot 1), in
    which rank 0 waits; it last did operation 9 of ep, broadcast of 1 uint32 (prefill, slot 1)

## How to fix
Look at the missing rank just behind what it did last: its log, an exception that nobody passed on,
a check that refused. Let a rank that gives up tell the others, so that they end at once and with
the reason.

## References
Missing ranks in PyTorch's `fr_trace`; Atlas pull request 101, issue 99.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.collectives import have_met, of_group, operations, told
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.derive.collectives.calls import GROUP, missed, stuck
from stepscope.ingest.trace import Trace

FIX = "look at the missing rank behind what it did last: a refusal, an exception, another branch"
_LAST = ("group", "ordinal", "op", "dtype", "num_elements", "command", "slot", "dur_ns")
_WAITED = ("ts_ns", "rank", "step", "ordinal", "op", "dtype", "num_elements", "command", "slot")


@dataclass(frozen=True, slots=True)
class RankMissing:
    """A rank never entered a collective that never ended for others."""

    code: ClassVar[str] = "COL002"
    name: ClassVar[str] = "rank-missing"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("collectives",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether there are several ranks, and ends that are not there never came."""
        recorded = trace.collectives.filter(pl.col("inferred").is_null())
        return any_row(recorded) and (len(trace.manifest.ranks) > 1 or have_met(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per group and missing rank, placed at the first wait, in order of time."""
        known = operations(trace)
        if not any_row(stuck(known)):
            return []
        waits = (
            missed(known, trace.manifest.ranks)
            .group_by(*GROUP, "missing")
            .agg(
                pl.col(_WAITED).sort_by(_WAITED).first(),
                num_waiting=pl.col("rank").n_unique(),
                count=pl.col("ordinal").n_unique(),
            )
            .join(_last_of_each(trace), left_on="missing", right_on="rank", how="left")
            .with_columns(end_ns=pl.lit(None, pl.Int64))
            .sort("ts_ns", *GROUP, "missing")
        )
        return each(self, waits.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        last = {name: row[f"last_{name}"] for name in _LAST}
        did = "it has no collective at all"
        if last["ordinal"] is not None:
            still = "" if last["dur_ns"] is not None else ", and never left it"
            did = f"it last did operation {last['ordinal']}{of_group(last)}, {told(last)}{still}"
        message = (
            f"rank {row['missing']} never came to operation {row['ordinal']}{of_group(row)}, "
            f"{told(dict(row))}, in which rank {row['rank']} waits; {did}"
        )
        evidence: Evidence = {
            "missing": f"rank {row['missing']}",
            "waiting": times(row["num_waiting"], "rank"),
            "ordinal": row["ordinal"],
            "last of the missing rank": None if last["ordinal"] is None else told(last),
            "collectives missed": row["count"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _last_of_each(trace: Trace) -> pl.LazyFrame:
    last = pl.col(_LAST).sort_by("ts_ns", "ordinal", *_LAST).last().name.prefix("last_")
    is_last = pl.col("ts_ns") == pl.col("ts_ns").max().over("rank")
    return operations(trace).filter(is_last).group_by("rank").agg(last)
