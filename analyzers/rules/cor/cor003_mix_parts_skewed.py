"""mix-parts-skewed: the parts of one MIX block started apart by much of the block's length.

## What it finds
MIX blocks of which the last part started later than the first by more than a share of the block's
length, measured from its first start to its last end. Blocks of one kernel are one finding, placed
at the worst of them; kernels whose names differ only in numbers count as one.

Blocks whose longest part runs for less than `min_run_ns` are not judged: getting them onto cores
takes longer than running them, whatever is done about their parts (COR009). The limit depends on
the device, which takes about 0.1 µs for each core that a thread polls, and not on the block.

It does not matter how the parts came apart. A part behind an earlier block (COR001) is one way;
parts that were all queued in pending slots, each behind a block of another length, is another.

## Why it hurts
The parts of a MIX exchange tiles and meet before they compute. From the first start to the last,
cores are held and do nothing, most often the AIC, the scarcest of them.

## Example
    qk_pv L* b*: parts of 31 of 96 blocks start apart, by 5.0 µs of 24.1 µs at worst

## How to fix
Start the parts together: run a MIX only on a group that is wholly free, or make it pending only
behind blocks that end together. When it has to be pending, behind the group that frees up first.

## References
Two-phase dispatch (idle, then pending slots chosen core by core) in the `tensormap_and_ringbuffer`
runtime of hw-native-sys/simpler; its example `TestMixedExample` records parts up to 33 ms apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.rules.cor.naming import with_kernel, with_label
from stepscope.analyzers.rules.cor.occupancy import mix_blocks
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.trace import Trace

FIX = (
    "run a MIX only on a group that is wholly free, "
    "or make all of it pending behind blocks that end together"
)


@dataclass(frozen=True, slots=True)
class MixPartsSkewed:
    """The parts of a MIX block started apart by more than `max_share` of its length.

    Of blocks with a part that runs for `min_run_ns`, by default some time more than the runtime
    takes from one block of a core to the next.
    """

    code: ClassVar[str] = "COR003"
    name: ClassVar[str] = "mix-parts-skewed"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("core_spans.end_ns", CLOCK)

    max_share: float = 0.1
    min_run_ns: int = 1_000
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any MIX block ran, and times were measured: an order has no lengths."""
        return trace.manifest.is_measured("core_spans") and any_row(
            trace.core_spans.filter(pl.col("shape") == "MIX", pl.col("end_ns").is_not_null())
        )

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per kernel, the costliest first, with the number of its skewed blocks."""
        is_skewed = (pl.col("skew_ns") > self.max_share * pl.col("length_ns")) & (
            pl.col("run_ns") >= self.min_run_ns
        )
        worst = pl.all().exclude("rank", "kernel").sort_by("skew_ns", "ts_ns", "task", "block")
        kernels = (
            with_kernel(mix_blocks(trace).collect().lazy(), trace)
            .with_columns(num_blocks=pl.len().over("rank", "kernel"))
            .filter(is_skewed)
            .group_by("rank", "kernel")
            .agg(worst.last(), count=pl.len(), total_ns=pl.col("skew_ns").sum())
        )
        costliest = with_label(kernels, trace).sort(-pl.col("total_ns"), "rank", "kernel")
        return each(self, costliest.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{row['kernel']}: parts of {row['count']:,} of {times(row['num_blocks'], 'block')} "
            f"start apart, by {duration(row['skew_ns'])} of {duration(row['length_ns'])} at worst"
        )
        evidence: Evidence = {
            "worst block": row["label"],
            "last part": f"core {row['core']}",
            "worst_skew_ns": row["skew_ns"],
            "worst_length_ns": row["length_ns"],
            "skew_ns": row["total_ns"],
            "blocks": row["count"],
            "blocks of the kernel": row["num_blocks"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
