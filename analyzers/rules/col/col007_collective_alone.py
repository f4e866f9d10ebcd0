"""collective-alone: a rank issued collectives though it is alone.

## What it finds
Collectives in which one rank alone is expected (`expected_ranks`). One finding per rank, with its
groups and what they took. In a profile it is worth knowing and no fault: what was profiled on one
machine calls them by itself, and what it took is what the device spent on them.

## Why it hurts
With one rank there is nobody to talk to. At best each one costs a launch and a synchronisation, in
every layer of every step. At worst the communicator was never set up, because there is one rank,
and the first broadcast crashes or waits for good: the path that everybody has who tries the engine
out on one machine.

## Example
    rank 0 issued 183 collectives of ep, and no other rank is expected in them: first broadcast of 1
    uint32 (slot, slot 0) in step 1

## How to fix
Ask for the world size where a collective is issued, in one place, and return what was given. Test
with one rank.

## References
Atlas pull requests 101 and 118: at world size 1 every broadcast is a no-op.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.collectives import operations, told
from stepscope.analyzers.views.known import CLOCK
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = "ask for the world size where a collective is issued, and return what was given"
NUM_SHOWN = 3


@dataclass(frozen=True, slots=True)
class CollectiveAlone:
    """A collective that one rank alone is expected in."""

    code: ClassVar[str] = "COL007"
    name: ClassVar[str] = "collective-alone"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("collectives.expected_ranks", CLOCK)

    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, placed at its first, in order of time."""
        first = (
            "ts_ns", "step", "ordinal", "op", "dtype", "num_elements", "command", "slot", "group",
            "inferred",
        )  # fmt: skip
        lasted = pl.col("dur_ns").clip(0, FAR_NS // 2**20)
        names = pl.col("group").filter(pl.col("group") != "")
        alone = (
            operations(trace)
            .filter(pl.col("expected_ranks").is_in(_of_one(trace)))
            .group_by("rank")
            .agg(
                pl.col(first).sort_by(first).first(),
                groups=names.unique().sort(),
                end_ns=pl.col("ts_ns").max(),
                took_ns=pl.when(pl.col("dur_ns").count() > 0).then(lasted.sum()),
                count=pl.len(),
            )
            .sort("ts_ns", "rank")
        )
        return each(self, alone.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        where = "" if row["step"] is None else f" in step {row['step']}"
        them = "it" if row["count"] == 1 else "them"
        message = (
            f"rank {row['rank']} issued {times(row['count'], 'collective')}"
            f"{_of_groups(row['groups'])}, and no other rank is expected in {them}: first "
            f"{told(dict(row))}{where}"
        )
        evidence: Evidence = {
            "group": ", ".join(row["groups"][:NUM_SHOWN]) or None,
            "groups": len(row["groups"]) or None,
            "collectives": row["count"],
            "took_ns": row["took_ns"],
            "inferred from": row["inferred"],
        }
        found = finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
        return found if row["inferred"] is None else replace(found, severity=Severity.INFO)


def _of_one(trace: Trace) -> list[str]:
    """What `expected_ranks` says where it is one rank."""
    said = operations(trace).select(pl.col("expected_ranks").unique().cast(pl.String))
    is_one = pl.col("expected_ranks").str.contains(r"^\s*\d+\s*$")
    return said.filter(is_one).collect()["expected_ranks"].to_list()


def _of_groups(names: list[str]) -> str:
    """` of ep`, ` of ep and tp`, ` of 35 groups`; nothing where no group has a name."""
    if len(names) > NUM_SHOWN:
        return f" of {len(names)} groups"
    return f" of {' and '.join(names)}" if names else ""
