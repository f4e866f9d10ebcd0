"""tile-overwritten: a block computed on what another block had put into its core's local memory.

## What it finds
Reads of a core's local memory of which the last write before was another block's, though the
contents differ from what the reading block, or the part of it that sends to this one, wrote. Both
sides of a conflict are found: the vector block whose tile a MIX overwrote, and the late part of the
MIX, which takes what that vector block left for the tile that was sent to it. One finding per block
that read something wrong; beyond a limit, the rest in one.

A part that is merely late is not this: what was sent to it lies there untouched when it comes to
read it (COR003 says that the parts started apart).

## Why it hurts
Nothing fails and nothing takes longer. The block that is hit did nothing wrong and may be of
another layer or request; all that is computed from its tile is wrong as well, and shows as outputs
that differ (EQV001), long after.

## Example
    act e1 L0 b0 2/4 computed on AIV0 of group 3 (core 14) with a tile that qk_pv L0 b1 1/8 had
    sent there 4.6 µs before

## How to fix
Admit a MIX only when every core that it needs has ended what it executes (COR001 names the
admission), or let hardware hold a part until its mates have started.

## References
The request for an occupancy guard in the `tensormap_and_ringbuffer` runtime of
hw-native-sys/simpler: conflicts that are hard to diagnose. Kernels of a MIX there exchange tiles
through FIFOs in local memory (`TPUSH`, `TPOP`).
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
from stepscope.analyzers.rules.cor.occupancy import BLOCK, holds
from stepscope.analyzers.views.core_memory import STREAM, is_core_memory
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.ingest.trace import Trace

FIX = (
    "admit a MIX only when every core that it needs has ended what it executes, "
    "or hold its parts back until all of them can start"
)
MEMORY = ("rank", "buffer")


@dataclass(frozen=True, slots=True)
class TileOverwritten:
    """What a block read in local memory is what another block wrote there last."""

    code: ClassVar[str] = "COR013"
    name: ClassVar[str] = "tile-overwritten"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("accesses.buffer", "core_spans", CLOCK)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is recorded what cores write into each other's local memory."""
        return any_row(_tiles(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per block that read something wrong, at its first such read, by time."""
        first = pl.all().exclude(BLOCK).sort_by("ts_ns", "core").first()
        blocks = _wrong(trace).group_by(BLOCK).agg(first).collect().lazy()
        named = with_label(with_label(blocks, trace), trace, "by_task", "by_block", "by")
        return each(self, named.sort("ts_ns", *BLOCK).collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        where = f"{row['core_kind'] or row['shape']} of group {row['group']} (core {row['core']})"
        before = duration(row["ts_ns"] - row["by_ts_ns"])
        hit = f"with a tile that {row['by']} had sent there {before} before"
        late = f"with what {row['by']} had left there {before} before, not the tile sent to it"
        is_late = row["shape"] == "MIX"
        message = f"{row['label']} computed on {where} {late if is_late else hit}"
        evidence: Evidence = {
            "block": row["label"],
            "overwritten by": row["by"],
            "core": row["core"],
            "contents found": row["digest"],
            "contents of its own": row["own_digest"],
            "overwritten_before_ns": row["ts_ns"] - row["by_ts_ns"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence)


def _tiles(trace: Trace) -> pl.LazyFrame:
    """Reads and writes of local memories by cores, of which the time is known."""
    return trace.accesses.filter(
        is_core_memory(),
        pl.col("op").is_in(["read", "write"]),
        pl.col("ts_ns").is_not_null(),
    )


def _wrong(trace: Trace) -> pl.LazyFrame:
    """Reads that find what another block wrote last, with who that was and what they had of it."""
    is_write = pl.col("op") == "write"
    # At one moment a block reads what is there before the next one writes.
    ordered = _by_blocks(trace).sort(*MEMORY, "ts_ns", is_write, "stream")
    last = [
        pl.when(is_write).then(name).forward_fill().over(MEMORY).alias(f"by_{name}")
        for name in ("task", "block", "ts_ns")
    ]
    own = pl.when(is_write).then("digest").forward_fill().over(*MEMORY, "task", "block")
    is_other = (pl.col("by_task") != pl.col("task")) | (pl.col("by_block") != pl.col("block"))
    is_same = (pl.col("digest") == pl.col("own_digest")).fill_null(value=False)
    return (
        ordered.with_columns(*last, own_digest=own)
        .filter(~is_write, is_other, ~is_same)
        .with_columns(end_ns=pl.lit(None, pl.Int64))
    )


def _by_blocks(trace: Trace) -> pl.LazyFrame:
    """Accesses with the block that its core executed then."""
    core = pl.col("stream").str.extract(STREAM).cast(pl.Int32, strict=False)
    columns = ("task", "block", "shape", "group", "core_kind")
    spans = holds(trace).select("rank", "core", *columns, "end_ns", start_ns="ts_ns")
    return (
        _tiles(trace)
        .with_columns(core=core)
        .sort("ts_ns")
        .join_asof(
            spans.sort("start_ns"), left_on="ts_ns", right_on="start_ns", by=["rank", "core"],
            check_sortedness=False,
        )
        .filter(pl.col("ts_ns") <= pl.col("end_ns"))
        .select(
            *MEMORY, "step", "ts_ns", "op", "stream", "digest", "core", "task", "block",
            pl.col("shape", "core_kind").cast(pl.String), "group",
        )
    )  # fmt: skip
