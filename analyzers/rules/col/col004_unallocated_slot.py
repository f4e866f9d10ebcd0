"""unallocated-slot: a worker was given a command for a slot that it does not have.

## What it finds
Commands for a slot, as a worker received them (every rank but the first of its group), that the
worker has not claimed by then, and commands for a slot that does not exist: negative, or not below
`parallel.num_slots` of the manifest's config. `allocate` makes a slot, so it may name one that is
free. A word that is a command itself is COL005's. Commands for one slot are one finding.

## Why it hurts
A worker that does not look writes to memory of nobody, or of somebody else; one that looks refuses,
and then the head waits for it.

## Example
    rank 1 was given 1 command for slot 1, which it has not allocated: first prefill in step 2

## How to fix
Allocate every slot on the worker before the first command, as many as the head may name, and bound
the head's slots by the same number. Check the slot of every command before it is used.

## References
Atlas pull request 101, ADR 0011: worker slots are allocated up front, lowest first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.col.commands import ALLOCATE, SLOT, codebook, commands, num_slots
from stepscope.analyzers.views.ownership import ownerships
from stepscope.ingest.trace import Trace

FIX = "allocate on the worker every slot that the head may name, before the first command"


@dataclass(frozen=True, slots=True)
class UnallocatedSlot:
    """A command names a slot that the worker has not claimed, or that does not exist."""

    code: ClassVar[str] = "COL004"
    name: ClassVar[str] = "unallocated-slot"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("collectives.command", "collectives.slot", "allocations")

    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per worker and slot, with the number of commands, in order of time."""
        declared = num_slots(trace)
        slot = pl.col("slot")
        is_outside = (slot < 0) | (slot >= (2**31 if declared is None else declared))
        first = ("ts_ns", "step", "ordinal", "command")
        wrong = (
            _with_claim(trace)
            .filter(~pl.col("word").is_in(list(codebook(trace))), pl.col("command") != SLOT)
            .with_columns(is_outside=is_outside)
            .filter(
                pl.col("is_outside")
                | ((pl.col("command") != ALLOCATE) & ~pl.col("is_claimed") & pl.col("is_worker"))
            )
            .group_by("rank", "slot", "is_outside")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .with_columns(num_slots=pl.lit(declared, pl.Int64))
            .sort("ts_ns", "rank", "slot")
        )
        return each(self, wrong.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        of = "" if row["num_slots"] is None else f": there are {row['num_slots']:,}"
        why = f"which does not exist{of}" if row["is_outside"] else "which it has not allocated"
        message = (
            f"rank {row['rank']} was given {times(row['count'], 'command')} for slot "
            f"{row['slot']}, {why}: first {row['command']} in step {row['step']}"
        )
        evidence: Evidence = {
            "slot": row["slot"],
            "slots": row["num_slots"],
            "commands": row["count"],
            "first": row["command"],
            "ordinal": row["ordinal"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _with_claim(trace: Trace) -> pl.LazyFrame:
    """Commands with is_claimed, whether the worker has the slot, and is_worker, if it has any.

    A worker's slot is the head's number for it, told by its owner, `slot N`.
    """
    number = pl.col("owner").str.extract(r"^slot (\d{1,9})$").cast(pl.Int32)
    owned = (
        ownerships(trace)
        .filter(pl.col("resource") == "slot")
        .with_columns(slot=number)
        .filter(pl.col("slot").is_not_null())
    )
    workers = owned.select("rank").unique().with_columns(is_worker=pl.lit(value=True))
    held = (
        owned.group_by("rank", "slot", "from_ns")
        .agg(until_ns=pl.col("to_ns").max())
        .sort("from_ns")
    )
    return (
        commands(trace)
        .sort("ts_ns")
        .join_asof(
            held, left_on="ts_ns", right_on="from_ns", by=["rank", "slot"], coalesce=False,
            check_sortedness=False,
        )
        .join(workers, on="rank", how="left")
        .with_columns(
            pl.col("is_worker").fill_null(value=False),
            is_claimed=(pl.col("ts_ns") <= pl.col("until_ns")).fill_null(value=False),
        )
    )  # fmt: skip
