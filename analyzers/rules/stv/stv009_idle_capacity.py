"""idle-capacity: a running slot stayed free while a request waited for one.

## What it finds
Runs of more than `max_steps` steps in which a request waited, fewer requests ran than there are
running slots (`max_num_seqs`, or slots if those are fewer), no prompt was worked on, and neither KV
blocks nor the token budget were short: what the request that was told to lack them needed was left,
or, where nobody was told so or how much, at least `free_share` of either. How many there are is
read from the manifest, or is the most that ever ran at once. What was told last of those who wait,
and still held when the last of these batches was formed, is in the evidence.

A step is not idle in which blocks had to be taken from somebody who ran, nor one in which those who
wait are not ready for a reason of their own (a grammar that is being compiled), are kept out by
what is no room (an adapter, the encoder, a pause), or stand behind such a one. Where the engine is
set to leave some steps after each prompt to the decodes (`scheduler.decode_rounds`), so many steps
running are not idle either.

Where free KV blocks are not recorded, a full pool looks just like that: then the rule is applicable
only if the manifest declares slots, and what a request needs is a slot.

## Why it hurts
A slot costs the same, live or masked. With half of the slots idle the same step gives half of the
tokens, and those who wait, wait for nothing.

## Example
    up to 3 of 4 running slots stayed free for 22 steps (12 to 33) with up to 4 requests waiting,
    because "slots are filled when all are free"

## How to fix
Look at the queue in every step, not only when the batch has drained, and admit into whatever is
free. If it is batched on purpose, bound the wait by steps or by time.

## References
mlxcel pull request 468: a freed slot is filled in the next step, also beside live ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import step_range, times
from stepscope.analyzers.rules.stv.idle_slots import idle_slots, is_idle, why
from stepscope.analyzers.views.declared import decode_rounds, num_slots
from stepscope.analyzers.views.known import knows
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.trace import Trace

FIX = "look at the queue in every step, and admit into whatever running slot is free"
_POOL = ("steps.kv_blocks_free", "steps.kv_blocks_total")


@dataclass(frozen=True, slots=True)
class IdleCapacity:
    """A running slot was free for more than `max_steps` steps running while a request waited."""

    code: ClassVar[str] = "STV009"
    name: ClassVar[str] = "idle-capacity"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (
        "steps.num_waiting",
        "steps.num_running",
        "steps.num_prefill_tokens",
        "steps.num_decode_tokens",
    )

    max_steps: int = 1
    free_share: float = 0.25
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether free KV blocks are known, or slots are all that a request needs."""
        return knows(trace, *_POOL) or num_slots(trace) is not None

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such runs, placed at the longest."""
        most = pl.col("num_waiting", "num_free_slots", "running_slots").max()
        least = pl.col("kv_blocks_free").min()
        runs = streaks(
            idle_slots(trace),
            is_idle(self.free_share),
            most,
            least,
            lost_ns=pl.col("lost_ns").sum(),
            last_formed_ns=pl.col("formed_ns").max(),
        ).filter(pl.col("num_steps") > max(self.max_steps, decode_rounds(trace)))
        worst = worst_of_each_rank(runs, all_lost_ns=pl.col("lost_ns").sum())
        has_clock = pl.lit(trace.manifest.clock.has_times)
        rows = why(worst, trace).sort("rank").with_columns(has_clock=has_clock).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"up to {row['num_free_slots']} of {times(row['running_slots'], 'running slot')} "
            f"stayed free for {times(row['num_steps'], 'step')} "
            f"({step_range(row)}) "
            f"with up to {times(row['num_waiting'], 'request')} waiting{_because(row)}"
        )
        evidence: Evidence = {
            "longest run_steps": row["num_steps"],
            "steps": row["all_steps"],
            "running slots": row["running_slots"],
            "free running slots at most": row["num_free_slots"],
            "waiting at most": row["num_waiting"],
            "lost slot time_ns": row["all_lost_ns"] if row["has_clock"] else None,
            "because": row["told_reason"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


def _because(row: Mapping[str, Any]) -> str:
    """What was told, and for KV blocks how many were needed, and free all the time."""
    if not row["told_reason"]:
        return ""
    needed, free = row["told_needed"], row["kv_blocks_free"]
    is_known = row["told_resource"] == "kv-block" and needed is not None and free is not None
    counts = f" ({needed:,} needed, {free:,} free)" if is_known else ""
    return f', because "{row["told_reason"]}"{counts}'
