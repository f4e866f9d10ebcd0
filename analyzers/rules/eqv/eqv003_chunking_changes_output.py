"""chunking-changes-output: a prompt in chunks gives another token than the same prompt at once.

## What it finds
Requests whose first differing token (as in EQV001: the digest of its logits beside that of a run
alone, in which prompts are computed at once) is the one that the last chunk of a prompt gives, the
prompt having come in several chunks. Where a request differs first at another token, of a prompt
that came whole or of a decode, this rule is silent and EQV001 is not: then it is not the chunks, or
not they alone. All such requests of a rank are one finding.

## Why it hurts
Chunk boundaries depend on load. So the same prompt gets different answers at different times, each
of them plausible; scores of a benchmark fall by a percent or two, and only when chunking is on.

## Example
    the prompts of 12 requests gave another token in chunks than at once: first req-00, 3 chunks,
    in step 3; 0 of 6 whole prompts did

## How to fix
Whatever a token sees must follow from its own position, not from where its chunk ends: compressed
history, causal masks, sliding windows, cumulative lengths, and what is kept between two chunks.
Compare the kernel's visible lengths per token with those of a single shot.

## References
ATOM pull request 1271: visible groups of compressed history were counted to the end of the chunk;
with `min((pos + 1) // ratio, committed)` GSM8K went from 0.93 to 0.9507.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import times
from stepscope.analyzers.rules.eqv.chunked import prompt_tokens, wrong_by_chunks
from stepscope.analyzers.views.known import any_row
from stepscope.ingest.trace import Trace

FIX = "let what a token sees follow from its own position, not from where its chunk ends"


@dataclass(frozen=True, slots=True)
class ChunkingChangesOutput:
    """Prompts in chunks give wrong tokens, and nothing else does."""

    code: ClassVar[str] = "EQV003"
    name: ClassVar[str] = "chunking-changes-output"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ("outputs", "batch_rows.num_computed")

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a prompt in chunks gave a token with the digest of a solo run beside it."""
        return any_row(prompt_tokens(trace).filter(pl.col("num_chunks") > 1))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of requests, placed at the first."""
        first = ("ts_ns", "step", "request", "position", "num_chunks", "digest", "solo_digest")
        is_whole = pl.col("num_chunks") == 1
        given = (
            prompt_tokens(trace)
            .group_by("rank")
            .agg(num_whole=is_whole.sum(), num_chunked=(~is_whole).sum())
        )
        ranks = (
            wrong_by_chunks(trace)
            .group_by("rank")
            .agg(
                pl.col(first).sort_by(first).first(),
                end_ns=pl.col("ts_ns").max(),
                count=pl.len(),
            )
            .join(given, on="rank", how="left")
            .sort("ts_ns", "rank")
        )
        return each(self, ranks.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        whose = "the prompt" if row["count"] == 1 else "the prompts"
        whole = f"; 0 of {times(row['num_whole'], 'whole prompt')} did"
        message = (
            f"{whose} of {times(row['count'], 'request')} gave another token in chunks than at "
            f"once: first {row['request']}, {row['num_chunks']} chunks, in step {row['step']}"
            f"{whole if row['num_whole'] else ''}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            "prompts in chunks": row["num_chunked"],
            "whole prompts": row["num_whole"],
            "chunks": row["num_chunks"],
            "position": row["position"],
            "digest": row["digest"],
            "solo digest": row["solo_digest"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
