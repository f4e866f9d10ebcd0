"""reserved-code: a slot or a token is a word that means a command.

## What it finds
Words that the manifest's config lists as commands (`parallel.codebook`) where a slot or a token
stands: a collective's `slot`, read as 32 bits without a sign, and tokens in `outputs` where these
are recorded. Those of one word on one rank are one finding. Without a codebook the rule is not
applicable.

## Why it hurts
A word is all that goes over the wire. A slot of "none", 2^64 - 1, is cut to 0xFFFFFFFF, which is
the word for shutdown: the worker goes away, or looks for slot 4,294,967,295. A head and a worker
that read a different number of words do the same with every command.

## Example
    rank 1 was at slot -1 2 times, whose 32 bits, 0xffffffff, are the command shutdown: first with
    allocate in step 8

## How to fix
Never let a mark for "none" reach the wire: check the slot of a request that has ended before a
command is sent for it, and refuse numbers of 32 bits and more. Keep the codes above every token
and slot there may be, and check that once, at start-up.

## References
Atlas pull request 101: codes from 0xFFFFFFE0 on, and `usize::MAX as u32`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.col.commands import as_word, codebook
from stepscope.analyzers.views.batches import tokens
from stepscope.analyzers.views.collectives import operations
from stepscope.analyzers.views.known import knows
from stepscope.ingest.trace import Trace

FIX = "never let a mark for no slot reach the wire, and keep the codes above every token and slot"


@dataclass(frozen=True, slots=True)
class ReservedCode:
    """A slot or a token has the value of a command."""

    code: ClassVar[str] = "COL005"
    name: ClassVar[str] = "reserved-code"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("collectives",)

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether any word is declared to be a command, and slots or tokens are recorded."""
        words = ("collectives.slot", "outputs.token")
        return bool(codebook(trace)) and any(knows(trace, word) for word in words)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and word, with the number of times, in order of time."""
        words = codebook(trace)
        first = ("ts_ns", "step", "value", "command", "request")
        taken = (
            pl.concat([_slots(trace), _tokens(trace)])
            .filter(pl.col("word").is_in(list(words)))
            .group_by("rank", "what", "word")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .with_columns(meant=pl.col("word").replace_strict(words, return_dtype=pl.String))
            .sort("ts_ns", "rank", "what", "word")
        )
        return each(self, taken.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        where = "" if row["step"] is None else f" in step {row['step']}"
        with_what = f" with {row['command']}" if row["command"] else ""
        first = f"first{with_what}{where}"
        if row["what"] == "token":
            first = f"first of {row['request']}{where}"
        message = (
            f"rank {row['rank']} was at {row['what']} {row['value']} "
            f"{times(row['count'], 'time')}, whose 32 bits, {row['word']:#010x}, are the command "
            f"{row['meant']}: {first}"
        )
        evidence: Evidence = {
            row["what"]: row["value"],
            "word": f"{row['word']:#010x}",
            "command": row["meant"],
            "times": row["count"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


_COLUMNS = ("rank", "step", "ts_ns", "value", "command", "request", "what", "word")


def _slots(trace: Trace) -> pl.LazyFrame:
    return (
        operations(trace)
        .filter(pl.col("slot").is_not_null())
        .with_columns(
            value=pl.col("slot").cast(pl.Int64),
            request=pl.lit(None, pl.String),
            what=pl.lit("slot"),
            word=as_word("slot"),
        )
        .select(_COLUMNS)
    )


def _tokens(trace: Trace) -> pl.LazyFrame:
    return (
        tokens(trace)
        .filter(pl.col("token").is_not_null())
        .with_columns(
            value="token",
            command=pl.lit(None, pl.String),
            what=pl.lit("token"),
            word=as_word("token"),
        )
        .select(_COLUMNS)
    )
