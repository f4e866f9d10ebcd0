"""admit-copies-all: letting one request in copied the KV of every slot.

## What it finds
Steps that admitted requests to slots and copied bytes of slots that were not admitted: together
more than `max_ratio` times what the admitted slots hold. A copy is a write of contents that were
written somewhere else before. All such steps of a rank are one finding.

Needs the size of a slot (`layout` in the manifest's config); without it the rule is not applicable.

## Why it hurts
The price of an admission grows with the number of slots, and everybody who is decoding waits for
it. With 32 slots, one admission moves 64 times the bytes that it needs to.

## Example
    3 admissions in 2 steps copied 33,554,432 bytes of other slots, 2.7 times their own: worst step
    12, with 16,777,216 bytes beside 4,194,304

## How to fix
Write the admitted slot's region on the device, and leave the others alone. If prompts have to go
through the host, keep a staging buffer of one slot instead of a mirror of all.

## References
mlxcel pull request 468: a refresh and a commit of the whole host mirror for each admission; the
follow-up writes one slot on the device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.declared import num_slots, slot_bytes
from stepscope.analyzers.views.slot_buffers import slot_writes
from stepscope.ingest.trace import Trace

FIX = "write the admitted slot's region on the device, or stage one slot, not a mirror of all"


@dataclass(frozen=True, slots=True)
class AdmitCopiesAll:
    """The bytes of other slots that admissions copied were `max_ratio` times their own."""

    code: ClassVar[str] = "KVB006"
    name: ClassVar[str] = "admit-copies-all"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "accesses.buffer",
        "accesses.first",
        "accesses.last",
        "accesses.epoch",
        "accesses.step",
        "allocations.step",
    )

    max_ratio: float = 1.0
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether the size of a slot is declared, and there is another one beside it."""
        return slot_bytes(trace) is not None and num_slots(trace) != 1

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of admissions, placed at the worst step."""
        worst = ("copied_bytes", "ts_ns", "step", "own_bytes", "buffer")
        costly = (
            _admissions(trace)
            .filter(pl.col("copied_bytes") > self.max_ratio * pl.col("own_bytes"))
            .group_by("rank")
            .agg(
                pl.col(worst).sort_by(worst, descending=[True, *[False] * 4]).first(),
                pl.col("end_ns").max(),
                all_copied_bytes=pl.col("copied_bytes").sum(),
                all_own_bytes=pl.col("own_bytes").sum(),
                num_steps=pl.len(),
                count=pl.col("num_admitted").sum(),
            )
        )
        return each(self, costly.sort("rank").collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        ratio = row["all_copied_bytes"] / row["all_own_bytes"]
        message = (
            f"{times(row['count'], 'admission')} in {times(row['num_steps'], 'step')} copied "
            f"{times(row['all_copied_bytes'], 'byte')} of other slots, {ratio:.1f} times their "
            f"own: worst step {row['step']}, with {times(row['copied_bytes'], 'byte')} beside "
            f"{row['own_bytes']:,}"
        )
        evidence: Evidence = {
            "buffer": row["buffer"],
            "admissions": row["count"],
            "steps": row["num_steps"],
            "copied_bytes": row["all_copied_bytes"],
            "own_bytes": row["all_own_bytes"],
            "worst_bytes": row["copied_bytes"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _admissions(trace: Trace) -> pl.LazyFrame:
    """Steps that admitted to slots: what they copied of other slots, and what their own hold.

    `buffer` is the one that was copied to first: a mirror, where there is one.
    """
    step = ("rank", "step")
    admitted = (
        trace.allocations.filter(
            pl.col("resource") == "slot", pl.col("op") == "claim", pl.col("step").is_not_null()
        )
        .group_by(step)
        .agg(num_admitted=pl.col("id").n_unique().cast(pl.Int64))
    )
    # The first write of an epoch is where its contents come from; all later ones are copies.
    is_copy = pl.col("ts_ns") > pl.col("born_ns")
    was_admitted = (pl.col("claim_step") == pl.col("step")).fill_null(value=False)
    return (
        slot_writes(trace)
        .filter(is_copy, ~was_admitted)
        .group_by(step)
        .agg(
            pl.col("ts_ns").min(), end_ns=pl.col("ts_ns").max(),
            copied_bytes=pl.col("num_bytes").sum(),
            buffer=pl.col("buffer").sort_by("ts_ns", "buffer").first(),
        )
        .join(admitted, on=step, how="left")
        .filter(pl.col("num_admitted") > 0)
        .with_columns(own_bytes=pl.col("num_admitted") * pl.lit(slot_bytes(trace), pl.Int64))
    )  # fmt: skip
