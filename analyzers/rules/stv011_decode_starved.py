"""decode-starved: prompts were run again and again while requests that could decode did not.

## What it finds
Runs of more than `max_steps` steps that worked on prompts and decoded nobody, although requests ran
that have their first token. How far the chunks filled the budget does not matter (BAT001 and BAT002
tell that apart).

## Why it hurts
Tokens stop for everybody who is in the middle of an answer. It feeds itself: those who do not
decode do not finish, keep their KV blocks, are preempted for the prompts, and become prompts again.

## Example
    494 steps running (4 to 497, 145.3 s) ran prompts and no decode, with up to 61 requests ready to
    decode

## How to fix
Alternate: after some prefill steps run a decode step, whatever waits; or mix both in a batch with a
reserve for decodes. Do not admit while what runs is about to be preempted for blocks.

## References
A public SGLang case of 2,863 prefill to 38 decode batches in 15 minutes; 494 prefill steps before
the first decode in the report on ATOM's mixed batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.batches import formed, with_left_out
from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.rule import each, finding
from stepscope.analyzers.streaks import streaks, worst_of_each_rank
from stepscope.analyzers.wording import duration, times

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = (
    "run a decode step after some prefill steps whatever waits, or mix both with a reserve; "
    "admit nobody while what runs lacks blocks"
)


@dataclass(frozen=True, slots=True)
class DecodeStarved:
    """More than `max_steps` steps running worked on prompts and left all decodes out."""

    code: ClassVar[str] = "STV011"
    name: ClassVar[str] = "decode-starved"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "steps.num_running",
        "steps.num_prefill_reqs",
        "steps.num_decode_reqs",
    )

    max_steps: int = 16
    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such steps, placed at the longest run."""
        is_starved = (
            (pl.col("num_prefill_reqs") > 0)
            & (pl.col("num_decode_reqs") == 0)
            & (pl.col("num_left_out") > 0)
        )
        runs = streaks(
            with_left_out(formed(trace), trace),
            is_starved,
            pl.col("num_left_out").max(),
            pl.col("num_prefill_tokens").sum(),
        ).filter(pl.col("num_steps") > self.max_steps)
        rows = worst_of_each_rank(runs).sort("rank").collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{times(row['num_steps'], 'step')} running ({row['step']} to {row['last_step']}, "
            f"{duration(row['end_ns'] - row['ts_ns'])}) ran prompts and no decode, with up to "
            f"{times(row['num_left_out'], 'request')} ready to decode"
        )
        evidence: Evidence = {
            "longest run_steps": row["num_steps"],
            "runs": row["num_streaks"],
            "steps": row["count"],
            "ready to decode at most": row["num_left_out"],
            "prefill_tokens": row["num_prefill_tokens"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
