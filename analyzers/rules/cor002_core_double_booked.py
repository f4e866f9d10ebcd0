"""core-double-booked: two blocks execute on one core at once.

## What it finds
Blocks that begin to execute on a core, `ts_ns`, before a block that began there earlier has ended,
`end_ns`. A block that waits in the core's pending slot does not execute. Blocks whose end was not
recorded prove nothing and are left out.

## Why it hurts
A core runs one program. Two at once share its registers, its local buffers and its completion flag:
results are undefined, and one of the two completions can be lost, so that the step never ends.

## Example
    qk_pv 3/8 began on core 12 (AIV0) while push 4/32 ran there, for 1.4 us

## How to fix
Let one place own the state of a core: publish a block to the running slot only when the core's
completion was seen. Look for a reservation that is made after admission looked, for a core number
computed with a shift that wraps (the 23rd group of a thread is bit 66), and for two scheduler
threads that own the same group.

## References
The 64-bit shift wrap and the stale reservation in the `tensormap_and_ringbuffer` runtime of
hw-native-sys/simpler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.naming import with_label
from stepscope.analyzers.occupancy import FAR_NS, holds, with_holder
from stepscope.analyzers.rule import each, finding
from stepscope.analyzers.wording import duration

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = (
    "publish a block to a core's running slot only after the core's completion was seen; "
    "look for late reservations and for core numbers computed with a shift that wraps"
)


@dataclass(frozen=True, slots=True)
class CoreDoubleBooked:
    """A block began on a core on which another had not ended."""

    code: ClassVar[str] = "COR002"
    name: ClassVar[str] = "core-double-booked"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("core_spans",)

    overlap_ns: int = 1
    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per block that began too early, in order of time."""
        ran = holds(trace).filter(pl.col("ts_ns") < pl.col("end_ns"), pl.col("end_ns") < FAR_NS)
        shared = pl.min_horizontal("end_ns", "holder_end_ns") - pl.col("ts_ns")
        is_early = pl.col("holder_end_ns") > pl.col("ts_ns")
        early = with_holder(ran, since="ts_ns").filter(is_early).with_columns(shared_ns=shared)
        twice = with_label(early.filter(pl.col("shared_ns") >= self.overlap_ns), trace)
        twice = with_label(twice, trace, "holder_task", "holder_block", "holder")
        rows = twice.sort("ts_ns", "rank", "core", "task", "block").collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        core = f"core {row['core']} ({row['core_kind'] or 'kind unknown'})"
        message = (
            f"{row['label']} began on {core} while {row['holder']} ran there, "
            f"for {duration(row['shared_ns'])}"
        )
        evidence: Evidence = {
            "block": row["label"],
            "holder": row["holder"],
            "core": core,
            "shared_ns": row["shared_ns"],
        }
        at = {**row, "end_ns": row["ts_ns"] + row["shared_ns"]}
        return finding(self, message, FIX, at=at, evidence=evidence)
