"""order-mismatch: two ranks came to the same collective with different operations.

## What it finds
The first position (`ordinal`) of each group at which the operations of the ranks differ, with the
verdict of PyTorch's flight recorder analyser on how:

- `kind`: another operation
- `dtype`: the same one on another type of element
- `size or syntax`: another number of elements, or a word that is another command (or for another
  slot) to whoever receives it
- `state`: some ranks got through it and others never did
- `undecided`: an all-to-all, whose sizes may differ, with other sizes, that some rank never left

Both sequences around it are the evidence, `B` a broadcast, `AR` an all-reduce, `>x<` where they
part. In a profile that was cut out of a run the ranks may begin at different collectives: nothing
is said where the first that they share differs already, nor where it is not known which of their
collectives are one.

## Why it hurts
Collectives match by position, not by name. Ranks that come with different ones wait for each other
for good, or worse: they take each other's bytes for something else and go on.

## Example
    at operation 34 of ep broadcast of 1 uint32 (slot, slot 2) on rank 0 faces all-reduce of 64
    float64 (decode, slot 3) on rank 1 (kind)

## How to fix
Look at what comes just before on each rank: a branch that only one of them takes, commands that are
said for several sequences before the first one is computed, a layer that is skipped when a batch is
empty. Let the head say a command, and both compute it, before the next is said.

## References
PyTorch's `fr_trace` (torch.distributed.flight_recorder), whose match states these are; Atlas pull
request 101: all preambles were broadcast up front.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.views.collectives import (
    face_each_other,
    in_short,
    of_group,
    operations,
    told,
)
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.derive.collectives.calls import GROUP, MEETING, compared
from stepscope.ingest.trace import Trace

FIX = (
    "look for a branch that one rank alone takes, and let a command be said and computed "
    "before the next one is said"
)
NUM_BEFORE, NUM_BEHIND, MOST_RANKS = 3, 3, 4
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class OrderMismatch:
    """The ranks' operations differ at a position of their group."""

    code: ClassVar[str] = "COL001"
    name: ClassVar[str] = "order-mismatch"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("collectives",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether two ranks came to one collective, which ordinals in common tell."""
        return face_each_other(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per group, at the first position that differs, in order of time."""
        if not _may_diverge(trace):
            return []
        diverged = _diverged(trace).sort("first_ns", *MEETING).head(self.limit).collect()
        near = _near(trace, diverged.lazy()).collect().to_dicts()
        of_group = {key: list(rows) for key, rows in groupby(near, _group)}
        return [self._finding(row, of_group[_group(row)]) for row in diverged.to_dicts()]

    def _finding(self, diverged: Row, near: list[Row]) -> Finding:
        ordinal = diverged["ordinal"]
        facing = [row for row in near if row["ordinal"] == ordinal]
        outlier = _outlier(facing)
        others = [row for row in facing if _signature(row) != _signature(outlier)] or [
            row for row in facing if row["rank"] != outlier["rank"]
        ]
        shown = sorted([outlier, others[0]], key=lambda row: int(row["rank"]))
        faces = " faces ".join(f"{told(row)} on rank {row['rank']}" for row in shown)
        message = f"at operation {ordinal}{of_group(diverged)} {faces} ({diverged['verdict']})"
        evidence: Evidence = {
            "verdict": diverged["verdict"],
            "ordinal": ordinal,
            "ranks": len(facing),
            **_sequences(near, ordinal, {row["rank"] for row in shown}),
        }
        return finding(self, message, FIX, at=outlier, evidence=evidence)


def _may_diverge(trace: Trace) -> bool:
    """Whether anything at all differs, or never ended, which is cheaper to say than what."""
    said = pl.struct("kind", "dtype", "num_elements", "command", "slot").hash()
    rows = operations(trace).select(
        at=pl.struct(MEETING).hash(), said=said, never_ended=pl.col("dur_ns").is_null()
    )
    differ = pl.col("said").min() != pl.col("said").max()
    return any_row(
        rows.group_by("at").agg((differ | pl.col("never_ended").any()).alias("may")).filter("may")
    )


def _diverged(trace: Trace) -> pl.LazyFrame:
    """The first position of each group at which ranks differ, with the verdict."""
    found = compared(operations(trace))
    is_first = pl.col("ordinal") == pl.col("ordinal").min().over(GROUP)
    return (
        found.with_columns(_first=is_first)
        .filter(pl.col("verdict").is_not_null())
        .with_columns(_at=pl.col("ordinal") == pl.col("ordinal").min().over(GROUP))
        .filter("_at", ~(pl.col("is_inferred") & pl.col("_first")))
        .select(*MEETING, "first_ns", "verdict")
    )


def _near(trace: Trace, diverged: pl.LazyFrame) -> pl.LazyFrame:
    """Operations around the positions of `diverged`, in order of group, rank and ordinal."""
    at = diverged.select(*GROUP, _at=pl.col("ordinal"))
    since = pl.col("ordinal") - pl.col("_at")
    return (
        operations(trace)
        .join(at, on=GROUP, how="left")
        .filter(since.is_between(-NUM_BEFORE, NUM_BEHIND))
        .sort(*GROUP, "rank", "ordinal", "ts_ns", "op", "dtype", "num_elements", "command", "slot")
    )


def _group(row: Mapping[str, Any]) -> tuple[str, str]:
    return row["group"], row["expected_ranks"]


def _signature(row: Row) -> tuple[Any, ...]:
    is_stuck = row["dur_ns"] is None and row["inferred"] is None
    return (
        row["kind"], row["dtype"], row["num_elements"], row["command"], row["slot"], is_stuck,
    )  # fmt: skip


def _outlier(facing: list[Row]) -> Row:
    """The first rank with what fewest ranks came with; of two, the later one."""
    signatures = [_signature(row) for row in facing]
    return min(facing, key=lambda row: (signatures.count(_signature(row)), -row["rank"]))


def _sequences(near: list[Row], ordinal: int, ranks: Iterable[int]) -> Evidence:
    """What the ranks did around the position; those that are shown first, then others."""
    listed = [*sorted(ranks), *sorted({row["rank"] for row in near} - set(ranks))][:MOST_RANKS]
    told_by: Evidence = {}
    for rank in listed:
        rows = [row for row in near if row["rank"] == rank]
        names = [
            f">{in_short(row)}<" if row["ordinal"] == ordinal else in_short(row) for row in rows
        ]
        told_by[f"rank {rank}"] = f"[{rows[0]['ordinal']}] {' '.join(names)}"
    return told_by
