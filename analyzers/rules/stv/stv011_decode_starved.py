"""decode-starved: prompts were run again and again while requests that could decode did not.

## What it finds
Runs of more than `max_steps` steps that worked on prompts and decoded nobody, although requests ran
that have their first token. How far the chunks filled the budget does not matter (BAT001 and BAT002
tell that apart).

It is an error in an engine that mixes prompts and decodes, or does not say whether it does. One
that declares that it does not (`scheduler.mixed` is false) does what it was told to: then it is a
warning, with what can be done without mixing.

SGLang's log has a line for each prefill batch, and one for some forty decode batches: what ran
between two lines is not known, and the rule is not applicable to it.

## Why it hurts
Tokens stop for everybody who is in the middle of an answer. It feeds itself: those who do not
decode do not finish, keep their KV blocks, are preempted for the prompts, and become prompts again.

## Example
    494 steps running (4 to 497, 145.3 s) ran prefills and no decode, with up to 61 requests ready
    to decode

## How to fix
Alternate: after some prefill steps run a decode step, whatever waits; or mix both in a batch with a
reserve for decodes, unless drafts are made that the engine refuses in mixed batches. Do not admit
while what runs is about to be preempted for blocks.

## References
SGLang issue 32549 (2,863 prefill to 38 decode batches in 15 minutes); 494 prefill steps before
the first decode in the report on ATOM's mixed batches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import step_range, times
from stepscope.analyzers.views.batches import formed, has_every_step, with_left_out
from stepscope.analyzers.views.declared import drafts_unmixed, mixes
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.trace import Trace

FIX = (
    "run a decode step after some prefill steps whatever waits, or mix both with a reserve; "
    "admit nobody while what runs lacks blocks"
)
FIX_UNMIXED = (
    "this engine is set to mix no prompts and decodes (scheduler.mixed): "
    "switch it on, with a reserve, or run a decode step after some prefill steps whatever waits"
)
FIX_DRAFTS = (
    "run a decode step after some prefill steps whatever waits: "
    "with drafts this engine refuses to mix them"
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

    def applies(self, trace: Trace) -> bool:
        """Tell whether every step is told of, as some logs leave decodes out."""
        return has_every_step(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such runs, placed at the longest."""
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
        has_clock = pl.lit(trace.manifest.clock.has_times)
        rows = worst_of_each_rank(runs).sort("rank").with_columns(has_clock=has_clock).collect()
        found = each(self, rows, self._finding, FIX, self.limit)
        return [_as_declared(one, trace) for one in found]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{times(row['num_steps'], 'step')} running ({step_range(row)}) "
            f"ran prefills and no decode, with up to "
            f"{times(row['num_left_out'], 'request')} ready to decode"
        )
        evidence: Evidence = {
            "longest run_steps": row["num_steps"],
            "runs": row["count"],
            "steps": row["all_steps"],
            "ready to decode at most": row["num_left_out"],
            "prefill_tokens": row["num_prefill_tokens"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _as_declared(found: Finding, trace: Trace) -> Finding:
    """A policy that was asked for is no error, and what it rules out is no advice."""
    if mixes(trace) is not False:
        return found
    fix = FIX_DRAFTS if drafts_unmixed(trace) else FIX_UNMIXED
    return replace(found, severity=Severity.WARNING, fix=fix)
