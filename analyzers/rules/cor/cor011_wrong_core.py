"""wrong-core: a block ran on a core that is not of the kind, or of the group, it was meant for.

## What it finds
Blocks whose `core` is not the core of `group` that `core_kind` names, or not of the kind that their
task's shape needs (a MIX needs several). What a core is goes by the configuration in the manifest;
where that does not say, by what most of the blocks on it were built for. Blocks that were meant for
one group and place are one finding, placed at the first of them.

## Why it hurts
A kernel built for an AIC does not run on an AIV: it hangs, and takes its group with it. Parts of a
MIX that are on cores of different groups cannot see each other's tiles. The core that was meant to
be used stays idle, and one that belongs to someone else is used twice.

## Example
    AIC of group 22 is core 22, but its blocks ran on core 25, AIV1 of group 0: 1 block (qk_pv 6/8)

The place of a group in its scheduler thread was computed as a shift of a 64-bit mask. The 23rd
group of a thread begins at bit 66, which wraps to bit 2, the AIV1 of its first group.

## How to fix
Compute core numbers from the group's number, not from a bit in a mask, or make the mask as wide as
a thread has cores. Refuse, at start-up, more groups to a thread than the mask holds.

## References
A hang of the `tensormap_and_ringbuffer` runtime of hw-native-sys/simpler with 24 groups on one
scheduler thread, caused by this shift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.cor.core_layout import PLACE, configured, layout
from stepscope.analyzers.rules.cor.naming import with_label
from stepscope.analyzers.rules.cor.occupancy import CORE, holds, places
from stepscope.analyzers.views.known import knows
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "compute core numbers from the group's number; "
    "look for a shift of a mask that is narrower than a thread has cores"
)


@dataclass(frozen=True, slots=True)
class WrongCore:
    """A block ran on a core that is not the one its group and kind name."""

    code: ClassVar[str] = "COR011"
    name: ClassVar[str] = "wrong-core"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("core_spans",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether cores are declared, or known by what they are to the blocks on them."""
        return bool(configured(trace)) or knows(trace, "core_spans.core_kind")

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per place that blocks were meant for and core that they ran on."""
        known, source = layout(trace)
        differs = _meant_kind().ne(pl.col("true_core_kind").cast(pl.String))
        differs |= pl.col("group").ne(pl.col("true_group"))
        wrong_places = places(trace).join(known, on=CORE, how="left").filter(differs).collect()
        if wrong_places.is_empty():
            return []
        meant = ("rank", *PLACE, "core")
        first = pl.all().exclude(*meant, "end_ns").sort_by("ts_ns", "task", "block").first()
        wrong = (
            holds(trace)
            .join(known, on=CORE, how="left")
            .filter(differs)
            .with_columns(core_kind=_meant_kind())
            .group_by(meant)
            .agg(first, pl.col("end_ns").max(), count=pl.len())
        )
        rows = with_label(wrong.collect().lazy(), trace).sort("ts_ns", *meant).collect()
        cores = {place: core for core, place in enumerate(configured(trace))}
        told = rows.with_columns(
            meant_core=pl.Series(
                [cores.get((kind, group)) for kind, group in rows.select(PLACE).iter_rows()],
                dtype=pl.Int64,
            ),
            source=pl.lit(source),
        )
        return each(self, told, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        meant, core = row["meant_core"], row["core"]
        is_core = f" is core {meant}, but" if meant is not None else ":"
        group = "a group that is not recorded" if row["group"] is None else f"group {row['group']}"
        message = (
            f"{row['core_kind']} of {group}{is_core} its blocks ran on core {core}, "
            f"{row['true_core_kind']} of group {row['true_group']}: "
            f"{times(row['count'], 'block')} ({row['label']})"
        )
        evidence: Evidence = {
            "meant for": f"{row['core_kind']} of {group}",
            "core meant": meant,
            "core": core,
            "that core is": f"{row['true_core_kind']} of group {row['true_group']}",
            "known from": row["source"],
            "first block": row["label"],
            "blocks": row["count"],
        }
        at = {**row, "end_ns": row["end_ns"] if row["end_ns"] < FAR_NS else None}
        return finding(self, message, FIX, at=at, evidence=evidence, count=row["count"])


def _meant_kind() -> pl.Expr:
    """What a block was meant for: its shape, where no core of that kind is what it ran on.

    A reader that knows no more than where a block ran says that it was meant for just that core.
    """
    shape, true_kind = pl.col("shape").cast(pl.String), pl.col("true_core_kind").cast(pl.String)
    is_foreign = shape.is_in(["AIC", "AIV"]) & (true_kind.str.slice(0, 3) != shape)
    return pl.when(is_foreign).then(shape).otherwise(pl.col("core_kind").cast(pl.String))
