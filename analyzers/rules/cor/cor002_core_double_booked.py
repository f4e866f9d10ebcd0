"""core-double-booked: two blocks execute on one core at once.

## What it finds
Blocks that begin to execute on a core, `ts_ns`, before a block that began there earlier has ended,
`end_ns`. A block that waits in the core's pending slot does not execute. A block that never ended
keeps its core; but when rows may be missing from the trace, its end may just be one of them, and it
proves nothing.

`overlap_ns` is 1: all times come from one counter of the device, so any overlap is real.

## Why it hurts
A core runs one program. Two at once share its registers, its local buffers and its completion flag:
results are undefined, and one of the two completions can be lost, so that the step never ends.

## Example
    qk_pv 3/8 began on core 12 (AIV0) while push 4/32 ran there, for 1.4 µs

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
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration
from stepscope.analyzers.rules.cor.naming import with_label
from stepscope.analyzers.rules.cor.occupancy import (
    holds,
    knows_ends,
    run_in_turn,
    with_holder,
    with_holder_named,
)
from stepscope.ingest.times import FAR_NS
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

    def applies(self, trace: Trace) -> bool:
        """Tell whether ends are recorded, or none can be missing."""
        return knows_ends(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per block that began too early, in order of time."""
        if self.overlap_ns > 0 and run_in_turn(trace):
            return []
        early = with_holder_named(with_holder(_executions(trace), since="ts_ns")).filter(
            pl.col("holder_end_ns") - pl.col("ts_ns") >= self.overlap_ns
        )
        twice = with_label(early.collect().lazy(), trace)
        twice = with_label(twice, trace, "holder_task", "holder_block", "holder")
        order = ("ts_ns", "rank", "core", "task", "block", "end_ns", "holder_end_ns", "holder")
        has_clock = pl.lit(trace.manifest.clock.has_times)
        rows = twice.sort(order).with_columns(has_clock=has_clock).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        core = f"core {row['core']} ({row['core_kind'] or 'kind unknown'})"
        until_ns = min(row["end_ns"], row["holder_end_ns"])
        shared_ns = until_ns - row["ts_ns"] if until_ns < FAR_NS else None
        how_long = ", and neither ended"
        if shared_ns is not None:
            how_long = f", for {duration(shared_ns)}" if row["has_clock"] else ""
        message = f"{row['label']} began on {core} while {row['holder']} ran there{how_long}"
        evidence: Evidence = {
            "block": row["label"],
            "holder": row["holder"],
            "core": core,
            "shared_ns": shared_ns if row["has_clock"] else None,
        }
        at = {**row, "end_ns": None if shared_ns is None else until_ns}
        return finding(self, message, FIX, at=at, evidence=evidence)


def _executions(trace: Trace) -> pl.LazyFrame:
    """Blocks that took time; one without an end blocks its core only if no row can be missing."""
    spans = holds(trace).filter(pl.col("ts_ns") < pl.col("end_ns"))
    if trace.manifest.is_whole("core_spans"):
        return spans
    return spans.filter(pl.col("end_ns") < FAR_NS)
