"""slot-mismatch: head and worker hold a request in different slots, or one of them moved it.

## What it finds
- Slots that a worker claimed for the head's slot N (its owner is `slot N`) and that have another
  number, whether or not the head itself ever gave one out. One finding per worker.
- Requests that two ranks hold, in slots of different numbers: the n-th claim of a request on one
  rank is compared with the n-th on the other. One finding per pair of ranks.
- A `move` to a slot on a rank whose requests another rank holds too, and that did not move there.
  One finding per pair of ranks.

What both ranks allocated is the evidence.

## Why it hurts
Commands name a slot. Where the numbers mean different sequences, one rank attends to the KV of
another request than the other does, and what they add up is neither. As long as nobody looks it up
in two traces, every rank by itself is right.

## Example
    rank 0 moved req-03 to slot 0 and rank 1 did not, 2 moves in all: rank 1 still has slot 0 there

## How to fix
Let one side give out slots and send them, claim lowest first on both, compare what was claimed, and
refuse to go on when it differs. Compact nothing while slots are on the wire, or say a move as a
command.

## References
Atlas pull request 101, ADR 0011: both sides allocate lowest first, and nothing is compacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = "let one side give out slots, compare what the other claimed, and say a move as a command"
NUM_SHOWN = 6
_ROW = {
    "rank": pl.Int32, "step": pl.Int64, "ts_ns": pl.Int64, "request": pl.String, "slot": pl.Int64,
    "other_rank": pl.Int32, "other_slot": pl.Int64, "what": pl.String,
}  # fmt: skip
NUMBERED, CLAIMED, MOVED = "numbered", "claimed", "moved"


@dataclass(frozen=True, slots=True)
class SlotMismatch:
    """Two ranks mean different slots by one number."""

    code: ClassVar[str] = "COL003"
    name: ClassVar[str] = "slot-mismatch"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("allocations",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether two ranks recorded whose slots are, or a worker which of the head's."""
        slots = _slots(trace)
        is_numbered = pl.col("number").is_not_null().any()
        return bool(slots.select((pl.col("rank").n_unique() > 1) | is_numbered).collect().item())

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per pair of ranks and kind, placed at the first, in order of time."""
        slots = _slots(trace)
        pair = ("rank", "other_rank", "what")
        first = ("ts_ns", "step", "request", "slot", "other_slot")
        pairs = (
            pl.concat([_misnumbered(slots), _claimed_apart(slots), _moved_alone(slots)])
            .group_by(pair)
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .join(_held(slots, "rank", "here"), on="rank", how="left")
            .join(_held(slots, "other_rank", "there"), on="other_rank", how="left")
            .sort("ts_ns", *pair)
        )
        return each(self, pairs.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        here, there = f"rank {row['rank']}", f"rank {row['other_rank']}"
        if row["what"] == NUMBERED:
            message = (
                f"{here} has {times(row['count'], 'slot')} under another number than the head: "
                f"first the head's slot {row['other_slot']} is its slot {row['slot']}"
            )
        elif row["what"] == CLAIMED:
            message = (
                f"{here} and {there} hold {times(row['count'], 'request')} in different slots: "
                f"first {row['request']}, in slot {row['slot']} and in slot {row['other_slot']}"
            )
        else:
            message = (
                f"{here} moved {row['request']} to slot {row['slot']} and {there} did not, "
                f"{times(row['count'], 'move')} in all"
            )
        evidence: Evidence = {
            "slot": row["slot"],
            "other slot": row["other_slot"],
            f"claimed on {here}": _listed(row["here"]),
            f"claimed on {there}": _listed(row["there"]),
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _slots(trace: Trace) -> pl.LazyFrame:
    """Claims and moves of slots, with the head's number where a worker tells one, and `nth`."""
    known = [pl.col(name).is_not_null() for name in ("ts_ns", "id", "owner")]
    number = pl.col("owner").str.extract(r"^slot (\d{1,9})$").cast(pl.Int64)
    return (
        trace.allocations.filter(
            *known, pl.col("resource") == "slot", pl.col("op").is_in(["claim", "move"])
        )
        .with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS), number=number)
        .sort("rank", "ts_ns", "generation", "id", "owner")
        .with_columns(nth=pl.int_range(pl.len()).over("rank", "op", "owner"))
        .rename({"id": "slot", "owner": "request"})
    )


def _misnumbered(slots: pl.LazyFrame) -> pl.LazyFrame:
    """Slots of workers that have another number than the head's.

    The head is the first rank that holds requests; null where it never let one in.
    """
    is_worker = pl.col("number").is_not_null()
    head = slots.select(other_rank=pl.col("rank").filter(~is_worker).min())
    wrong = slots.filter(pl.col("op") == "claim", pl.col("number") != pl.col("slot"))
    return _as_rows(
        wrong.join(head, how="cross").with_columns(
            other_slot="number", request=pl.lit(None, pl.String)
        ),
        NUMBERED,
    )


def _claimed_apart(slots: pl.LazyFrame) -> pl.LazyFrame:
    """Requests that the first rank to have them holds in another slot than a later rank does."""
    claims = slots.filter(pl.col("op") == "claim", pl.col("number").is_null())
    same = ("request", "nth")
    first = pl.col("rank").min().over(same)
    lowest = pl.col("slot").filter(pl.col("rank") == first).first().over(same)
    apart = claims.with_columns(_first=first, _slot=lowest).filter(
        pl.col("slot") != pl.col("_slot")
    )
    return _as_rows(
        apart.with_columns(other_rank="rank", other_slot="slot", rank="_first", slot="_slot"),
        CLAIMED,
    )


def _moved_alone(slots: pl.LazyFrame) -> pl.LazyFrame:
    """Moves to a slot that a rank which holds the same requests, or a worker, did not do."""
    moves = slots.filter(pl.col("op") == "move").with_columns(
        nth=pl.int_range(pl.len()).over("rank", "slot")
    )
    workers = slots.filter(pl.col("number").is_not_null()).select(other_rank="rank").unique()
    holders = slots.filter(pl.col("number").is_null()).select("request", other_rank="rank").unique()
    asked = pl.concat(
        [
            moves.join(workers, how="cross"),
            moves.join(holders, on="request", how="left").filter(
                pl.col("other_rank").is_not_null()
            ),
        ]
    ).filter(pl.col("rank") != pl.col("other_rank"))
    done = moves.select("slot", "nth", other_rank="rank")
    alone = asked.join(done, on=["other_rank", "slot", "nth"], how="anti")
    return _as_rows(alone.with_columns(other_slot=pl.lit(None, pl.Int64)), MOVED)


def _as_rows(frame: pl.LazyFrame, what: str) -> pl.LazyFrame:
    return frame.with_columns(what=pl.lit(what)).select(
        pl.col(name).cast(dtype) for name, dtype in _ROW.items()
    )


def _held(slots: pl.LazyFrame, rank: str, into: str) -> pl.LazyFrame:
    """The first slots that a rank claimed or moved to, each `owner in slot N`."""
    one = pl.format("{} in slot {}", "request", "slot")
    order = ("ts_ns", "nth", "slot", "request")
    return slots.group_by(pl.col("rank").alias(rank)).agg(
        one.sort_by(order).head(NUM_SHOWN + 1).alias(into)
    )


def _listed(held: list[str] | None) -> str | None:
    if held is None:
        return None
    return ", ".join(held[:NUM_SHOWN]) + (", ..." if len(held) > NUM_SHOWN else "")
