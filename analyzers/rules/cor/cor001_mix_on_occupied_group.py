"""mix-on-occupied-group: a MIX block was admitted to a core group of which a core was still held.

## What it finds
Partial admission. A MIX block needs several cores of one group. The rule fires when one of its
parts takes its core at once, while another core that the block needs is running, or held for, a
block that was dispatched earlier. That part has to wait in the core's pending slot, or start late.
A block whose parts are all queued in pending slots is not this: nothing is held in vain (but see
COR003). One finding per block; beyond a limit, the rest in one.

## Why it hurts
The parts of a MIX exchange tiles, so the part that started holds its core, most often the AIC, and
computes nothing until the last one starts. On hardware that does not queue, the late part meets a
core that executes something else: the conflict is undefined behaviour and hard to diagnose.

## Example
    qk_pv 7/8 took AIC AIV0 of group 2 while push 31/32 held AIV1 for 3.0 µs more; its parts started
    3.0 µs apart

The scheduler asked whether the group's AIC was free. It was; AIV1 was not asked.

## How to fix
Admit a MIX block only when the group's AIC and every AIV of it that the block needs are free, and
let vector-only dispatch reserve its core before MIX admission looks. That costs next to nothing;
draining all vector work first, or reserving whole groups for it, costs overlap that is legal.

## References
The request for an occupancy guard in the `tensormap_and_ringbuffer` runtime of
hw-native-sys/simpler (1C2V clusters, DeepSeek-V4 MoE).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration
from stepscope.analyzers.rules.cor.admitted_in_part import admitted_in_part
from stepscope.analyzers.rules.cor.naming import with_label
from stepscope.analyzers.rules.cor.occupancy import BLOCK, knows_ends
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

FIX = (
    "admit a MIX only when the AIC and every AIV of the group that it needs are free, "
    "and let AIV dispatch reserve its core before MIX admission looks"
)


@dataclass(frozen=True, slots=True)
class MixOnOccupiedGroup:
    """A part of a MIX block took a core while another core of the block was held by another."""

    code: ClassVar[str] = "COR001"
    name: ClassVar[str] = "mix-on-occupied-group"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("core_spans.dispatch_ns",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any MIX block ran, and it is known which blocks ended."""
        return knows_ends(trace) and any_row(trace.core_spans.filter(pl.col("shape") == "MIX"))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per MIX block that was admitted in part, in order of time."""
        has_clock = trace.manifest.clock.has_times
        is_measured = pl.lit(has_clock and trace.manifest.is_measured("core_spans"))
        conflicts = admitted_in_part(trace).with_columns(is_measured=is_measured)
        rows = _with_reason(conflicts, trace).sort("ts_ns", *BLOCK).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        left_ns = row["holder_left_ns"]
        for_more = f" for {duration(left_ns)} more" if left_ns and row["is_measured"] else ""
        known = row if row["is_measured"] else {}
        held_ns = known.get("held_idle_ns")
        apart = f"; its parts started {duration(held_ns)} apart" if held_ns else ""
        until = " and never ended" if left_ns is None else for_more
        message = f"{row['label']} {row['conflict']}{until}{apart}"
        evidence: Evidence = {
            "block": row["label"],
            "took": row["took"],
            "holder": row["holder"],
            "holder core": f"{row['held_core_kind']} (core {row['core']})",
            "holder_ends_after_ns": known.get("holder_left_ns"),
            "parts start": _starts(row["kinds"], row["starts_ns"]) if known else None,
            "held_idle_ns": known.get("held_idle_ns"),
            "admitted because": row["reason"],
            "free and not tried": row["instead"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence)


def _with_reason(conflicts: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add what the scheduler recorded when it admitted the block: why, and what else was free."""
    is_admission = (pl.col("subject_kind") == "task") & (pl.col("verdict") == "admitted")
    admitted = trace.decisions.filter(is_admission, pl.col("ts_ns").is_not_null()).select(
        "rank", "ts_ns", "reason", "instead", first_holder="holder", first_core="core",
        task=pl.col("subject").cast(pl.Int64, strict=False),
    )  # fmt: skip
    # It names the first core that it found busy, or else the block there, not the one that ends
    # last.
    named = with_label(conflicts, trace, "first_holder_task", "first_holder_block", "first_holder")
    for found in ("first_core", "first_holder"):
        told = admitted.filter(pl.col("first_core").is_null() == (found == "first_holder"))
        named = named.sort("ts_ns").join_asof(
            told.select("rank", "task", found, "ts_ns", "reason", "instead").sort(
                "ts_ns", "reason", "instead"
            ),
            on="ts_ns",
            by=["rank", "task", found],
            check_sortedness=False,
            suffix="_of_label",
        )
    either = (pl.coalesce(name, f"{name}_of_label").alias(name) for name in ("reason", "instead"))
    return named.with_columns(either)


def _starts(kinds: list[str | None], starts_ns: list[int]) -> str:
    """When each part started, from the first on: `AIC 0.0 · AIV0 0.0 · AIV1 +3.0 µs`."""
    late_us = [(start - min(starts_ns)) / 1000 for start in starts_ns]
    parts = zip(kinds, late_us, strict=True)
    return " · ".join(f"{kind or '?'} {'+' * (us > 0)}{us:.1f}" for kind, us in parts) + " µs"
