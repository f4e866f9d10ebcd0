"""protocol-skew: ranks of one run speak different versions of the protocol.

## What it finds
Ranks whose counter `protocol version` differs from that of the first rank. One finding per version.

## Why it hurts
A version says how many words there are and what they mean. A head that sends no slots and a worker
that reads them are one word apart: it takes the command for a slot and the next word for the
command. What follows depends on the numbers, from a refusal to a wait without end.

## Example
    rank 0 speaks version 1 of the protocol and 1 rank speaks version 2: first rank 1

## How to fix
Let the ranks compare versions before the first command, in a message that has not changed since the
first version, and refuse to start. Roll out head and workers together.

## References
Atlas pull request 101, ADR 0011: protocol v2 puts a slot before every command.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

FIX = "let the ranks compare versions before the first command, and refuse to start"
COUNTER = "protocol version"


@dataclass(frozen=True, slots=True)
class ProtocolSkew:
    """Ranks speak different versions."""

    code: ClassVar[str] = "COL006"
    name: ClassVar[str] = "protocol-skew"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("counters",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether two ranks told the version that they speak."""
        return any_row(_told(trace).select(pl.col("rank").n_unique()).filter(pl.col("rank") > 1))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per version that is not the first rank's."""
        told = (
            _told(trace)
            .group_by("rank")
            .agg(pl.col("ts_ns", "step", "value").sort_by("ts_ns", "value", "step").last())
            .sort("rank")
            .with_columns(
                head=pl.col("rank").first(), head_value=pl.col("value").first(),
                end_ns=pl.lit(None, pl.Int64),
            )
        )  # fmt: skip
        versions = (
            told.filter(pl.col("value") != pl.col("head_value"))
            .group_by("value", "head", "head_value", "end_ns")
            .agg(pl.col("rank", "ts_ns", "step").sort_by("rank").first(), count=pl.len())
            .sort("rank")
        )
        return each(self, versions.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        speak = "speaks" if row["count"] == 1 else "speak"
        message = (
            f"rank {row['head']} speaks version {row['head_value']:g} of the protocol and "
            f"{times(row['count'], 'rank')} {speak} version {row['value']:g}: first rank "
            f"{row['rank']}"
        )
        evidence: Evidence = {
            "version of the first rank": row["head_value"],
            "version": row["value"],
            "ranks": row["count"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _told(trace: Trace) -> pl.LazyFrame:
    """Versions that ranks told, and when."""
    return trace.counters.filter(
        pl.col("name") == COUNTER, pl.col("value").is_finite(), pl.col("ts_ns").is_not_null()
    )
