"""silent-stall: requests wait, running slots and KV blocks are free, and nobody is let in.

## What it finds
Runs of more than `max_steps` steps in which requests waited, a running slot was free, at least
`free_share` of the KV blocks and of the token budget were free, and no prompt was worked on; and no
decision that was recorded in or before that time says that a waiting request lacked anything. An
engine that gives a reason is not silent (see STV009); but that so many KV blocks, or running slots,
were lacking as have been free ever since is no reason. Without KV blocks in the trace the rule is
not applicable.

## Why it hurts
Health checks pass, decodes that are under way go on, and new requests get no first token until a
restart. Nothing in the logs says why, because the code that would say so is not reached.

## Example
    212 steps running (340 to 551, 9.4 s) let nobody in, with up to 31 requests waiting, 41 of 64
    running slots and 812 of 1,024 KV blocks free

## How to fix
Find what was latched: a flag such as `batch_is_full` that is set when a request does not fit has to
be cleared whenever a request ends, is aborted or gives blocks back. Better, do not keep it: compute
it from the pool in each step. Record why the head of the queue is left out.

## References
SGLang's `batch_is_full`, set by one admission and not cleared on every way out: issue 35537, in
which the last chunk of a prompt sets it, and it stays until somebody ends; vLLM issues on engines
that stop scheduling with an empty pool.
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
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.trace import Trace

FIX = (
    "compute from the pool in each step whether somebody can come in, instead of latching it; "
    "record why the head of the queue is left out"
)


# What was told to be lacking, and was there in every step of the run.
_IS_PAST = (
    ((pl.col("told_resource") == "kv-block") & (pl.col("told_needed") <= pl.col("kv_blocks_free")))
    | ((pl.col("told_resource") == "seat") & (pl.col("told_needed") <= pl.col("num_free_slots")))
).fill_null(value=False)


@dataclass(frozen=True, slots=True)
class SilentStall:
    """Nobody was let in for more than `max_steps` steps running, with room and without a reason."""

    code: ClassVar[str] = "STV010"
    name: ClassVar[str] = "silent-stall"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "steps.num_waiting",
        "steps.num_running",
        "steps.num_prefill_tokens",
        "steps.num_decode_tokens",
        "steps.kv_blocks_free",
        "steps.kv_blocks_total",
    )

    max_steps: int = 32
    free_share: float = 0.25
    limit: int = 50

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such runs, placed at the longest."""
        # A pool that is not told of is no pool that has room.
        is_known = pl.col("kv_blocks_free", "kv_blocks_total").is_not_null()
        is_stalled = is_idle(self.free_share) & pl.all_horizontal(is_known)
        runs = streaks(
            idle_slots(trace),
            is_stalled,
            pl.col("num_waiting", "running_slots", "kv_blocks_total").max(),
            pl.col("num_free_slots", "kv_blocks_free").min(),
            last_formed_ns=pl.col("formed_ns").max(),
        ).filter(pl.col("num_steps") > self.max_steps)
        is_silent = pl.all_horizontal(pl.col("told_reason", "told_resource").is_null())
        silent = why(runs, trace).filter(is_silent | _IS_PAST)
        has_clock = pl.lit(trace.manifest.clock.has_times)
        rows = worst_of_each_rank(silent).sort("rank").with_columns(has_clock=has_clock).collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        message = (
            f"{times(row['num_steps'], 'step')} running ({step_range(row)}) "
            f"let nobody in, with up to "
            f"{times(row['num_waiting'], 'request')} waiting, {row['num_free_slots']:,} of "
            f"{times(row['running_slots'], 'running slot')} and {row['kv_blocks_free']:,} of "
            f"{row['kv_blocks_total']:,} KV blocks free"
        )
        evidence: Evidence = {
            "longest run_steps": row["num_steps"],
            "steps": row["all_steps"],
            "waiting at most": row["num_waiting"],
            "free running slots at least": row["num_free_slots"],
            "free_blocks at least": row["kv_blocks_free"],
            "pool_blocks": row["kv_blocks_total"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])
