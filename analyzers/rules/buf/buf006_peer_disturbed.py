"""peer-disturbed: a live slot's contents went back in time when another request was admitted.

## What it finds
Writes to a slot that somebody had since an earlier step, of contents (`epoch`) older than what the
slot held already. All such writes of one step are one finding; it names the requests whose slots
were disturbed, and who was admitted in the step.

Needs to know whose a slot was (`allocations`) and how large one is (`layout` in the manifest's
config); without either it is not applicable.

## Why it hurts
The tokens that the live request decoded since are gone from its KV, and it goes on as if they were
there. Its output changes because somebody else came in, which no test of one request alone shows.

## Example
    admitting req-03 took 2 live slots back to older contents: first that of req-01 (slot 1), from
    epoch 34 to 2

## How to fix
Read the live slots back from the device before the whole mirror is written to it, or write only the
slot that is admitted.

## References
mlxcel pull request 468: the host mirror is refreshed before each commit that happens beside live
slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.declared import slot_bytes
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.slot_buffers import slot_accesses
from stepscope.ingest.trace import Trace

FIX = "refresh the mirror from the device before it is committed, or write the admitted slot alone"
STEP = ("rank", "step")
NAMED = 3


@dataclass(frozen=True, slots=True)
class PeerDisturbed:
    """Older contents were written to a slot that was live since an earlier step."""

    code: ClassVar[str] = "BUF006"
    name: ClassVar[str] = "peer-disturbed"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "accesses.buffer",
        "accesses.first",
        "accesses.epoch",
        "accesses.step",
        "allocations.step",
    )

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether the size of a slot is declared, and one was written in a later step."""
        return slot_bytes(trace) is not None and any_row(_in_held_slots(slot_accesses(trace)))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per step, with the number of slots that it disturbed, in order of time."""
        first = ("ts_ns", "slot", "owner", "buffer", "newest", "epoch")
        steps = (
            _gone_back(slot_accesses(trace))
            .group_by(STEP)
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.col("slot").n_unique(),
            )
            .join(_admitted(trace), on=STEP, how="left")
            .rename({"owner": "request"})
            .sort("ts_ns", *STEP)
        )
        return each(self, steps.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        admitted = row["admitted"] or []
        who = ", ".join(admitted[:NAMED]) + (", ..." if len(admitted) > NAMED else "")
        what = f"admitting {who}" if admitted else f"step {row['step']}"
        message = (
            f"{what} took {times(row['count'], 'live slot')} back to older contents: "
            f"first that of {row['request']} (slot {row['slot']}), "
            f"from epoch {row['newest']} to {row['epoch']}"
        )
        evidence: Evidence = {
            "slots": row["count"],
            "admitted": who or None,
            "buffer": row["buffer"],
            "epoch before": row["newest"],
            "epoch after": row["epoch"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _gone_back(accesses: pl.LazyFrame) -> pl.LazyFrame:
    """Writes to live slots of an epoch older than one that the slot's owner had there before."""
    owned = ("rank", "buffer", "slot", "owner", "claim_ns")
    newest = pl.col("epoch").cum_max().shift(1).over("_owned")
    return (
        accesses.filter(pl.col("op") == "write", pl.col("owner").is_not_null())
        .with_columns(_owned=pl.struct(owned).hash())
        .sort("ts_ns", "epoch")
        .with_columns(newest=newest)
        .filter(pl.col("epoch") < pl.col("newest"), pl.col("claim_step") < pl.col("step"))
    )


def _admitted(trace: Trace) -> pl.LazyFrame:
    is_claim = (pl.col("resource") == "slot") & (pl.col("op") == "claim")
    return trace.allocations.filter(is_claim).group_by(STEP).agg(admitted=pl.col("owner").sort())


def _in_held_slots(accesses: pl.LazyFrame) -> pl.LazyFrame:
    """Writes to slots whose owner has them since an earlier step."""
    return accesses.filter(pl.col("op") == "write", pl.col("claim_step") < pl.col("step"))
