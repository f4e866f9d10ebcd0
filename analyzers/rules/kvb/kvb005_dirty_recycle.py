"""dirty-recycle: a request read what an earlier owner of its slot had left there.

## What it finds
Reads of a slot whose contents (`epoch`) are older than anything its present owner wrote, after the
owner had written to it. Reads before that, such as a copy of all slots that saves the live ones,
are no harm. All such reads of one owner of a slot are one finding.

Needs to know whose a slot was (`allocations`) and how large one is (`layout` in the manifest's
config: `slot_tokens` times `token_bytes`); without either it is not applicable.

## Why it hurts
The new request attends to the old one's keys and values behind its own. Its output depends on who
had the slot before, and on how long that one's output was: it differs from a run alone, and one
user's prompt leaks into another's answer.

## Example
    req-04 read 13 times in slot 1 what req-01 had left there: first 425,984 bytes in step 14

## How to fix
Reset the slot's length when it changes hands, and mask by the owner's length, not by the slot's; or
write the whole slot with the prompt. Test it with a long request followed by a short one.

## References
mlxcel pull request 468: "a recycled slot starts clean".
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
from stepscope.analyzers.views.ownership import ownerships
from stepscope.analyzers.views.slot_buffers import SLOT, slot_accesses, slot_writes
from stepscope.ingest.trace import Trace

FIX = "reset a slot's length when it changes hands, and mask by its owner's length"
OWNED = (*SLOT, "owner", "claim_ns")


@dataclass(frozen=True, slots=True)
class DirtyRecycle:
    """A read saw contents from before its owner's first write to the slot."""

    code: ClassVar[str] = "KVB005"
    name: ClassVar[str] = "dirty-recycle"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "accesses.buffer",
        "accesses.first",
        "accesses.epoch",
        "allocations",
    )

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether the size of a slot is declared, and one had anything of another owner."""
        had_others = any_row(_taken_over(trace)) or any_row(_dirty(trace))
        return slot_bytes(trace) is not None and had_others

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per owner of a slot, with the number of dirty reads, in order of time."""
        first = ("ts_ns", "step", "buffer", "num_bytes", "before")
        dirty = (
            _dirty(trace)
            .group_by(OWNED)
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                all_bytes=pl.col("num_bytes").sum(),
                count=pl.len(),
            )
            .rename({"owner": "request"})
            .sort("ts_ns", *SLOT, "request")
        )
        return each(self, dirty.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        whose = row["before"] or "an earlier owner"
        num_bytes = row["num_bytes"]
        first = "some" if num_bytes is None else times(num_bytes, "byte")
        message = (
            f"{row['request']} read {times(row['count'], 'time')} in slot {row['slot']} what "
            f"{whose} had left there: first {first} in step {row['step']}"
        )
        evidence: Evidence = {
            "slot": row["slot"],
            "buffer": row["buffer"],
            "written by": row["before"],
            "reads": row["count"],
            "read_bytes": row["all_bytes"],
            "first_bytes": row["num_bytes"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _dirty(trace: Trace) -> pl.LazyFrame:
    """Reads of an epoch older than the owner's first, with who wrote it: `before`."""
    is_own = pl.col("owner").is_not_null() & (pl.col("born_ns") >= pl.col("claim_ns"))
    own = slot_writes(trace).filter(is_own).collect().lazy()
    since = (*SLOT, "claim_ns")
    firsts = own.group_by(since).agg(
        first_epoch=pl.col("epoch").min(), first_ns=pl.col("ts_ns").min()
    )
    dirty = (
        slot_accesses(trace)
        .filter(pl.col("owner").is_not_null(), pl.col("op") == "read")
        .join(firsts, on=since, how="left")
        .filter(pl.col("epoch") < pl.col("first_epoch"), pl.col("ts_ns") >= pl.col("first_ns"))
        .collect()
        .lazy()
    )
    contents = [*SLOT, "epoch"]
    writers = (
        own.join(dirty, on=contents, how="semi")
        .group_by(contents)
        .agg(before=pl.col("owner").sort_by("ts_ns", "owner").first())
    )
    return dirty.join(writers, on=contents, how="left")


def _taken_over(trace: Trace) -> pl.LazyFrame:
    """Slots that several owners had, one after the other."""
    owned = ownerships(trace).filter(pl.col("resource") == "slot").group_by("rank", "id")
    return owned.agg(pl.col("owner").n_unique()).filter(pl.col("owner") > 1)
