"""hold-and-wait: requests hold KV blocks, wait for more, and none of them runs: a deadlock.

## What it finds
Runs of more than `max_steps` steps in which nothing was computed, at the end of which at least two
requests held KV blocks and at least one of these had last been told that it lacks more. What they
lack is held by the others, who wait as well. The holders are named, those with most blocks first.
Of a pool that is counted in tokens, its tokens are what they hold.

## Why it hurts
Nobody gets on, and nobody lets go: the engine stands until clients time out or it is restarted. The
pool is full, so it looks busy.

## Example
    1,001 steps running (67 to 1067, 1.0 s) computed nothing: 16 requests hold 60 of 60 KV blocks
    and lack more, or wait for those who do: req-00 (4), req-01 (4), req-02 (4), ...

## How to fix
Break one of the conditions: take blocks from a holder that does not run, the youngest first
(preemption has to look at those that wait, too, and not only at those that run); reserve all that a
request needs when it is let in; or let whoever can go on pass the head of the queue.

## References
vLLM pull requests 40968 (two requests with half the pool each wait for one another, for 20 to 30
minutes) and 57104, issues 45388 and 15996 (no preemption, and nothing is scheduled).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.batches import formed
from stepscope.analyzers.views.known import CLOCK, knows
from stepscope.analyzers.views.ownership import POOLED, ownerships
from stepscope.analyzers.views.requests import has_decisions
from stepscope.analyzers.views.streaks import streaks
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "take blocks from a holder that does not run, the youngest first, "
    "or reserve all that a request needs when it is let in"
)
NAMED = 3


@dataclass(frozen=True, slots=True)
class HoldAndWait:
    """Nothing was computed for more than `max_steps` steps, and holders of KV blocks lack more."""

    code: ClassVar[str] = "KVB008"
    name: ClassVar[str] = "hold-and-wait"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = (
        "steps.num_prefill_tokens",
        "steps.num_decode_tokens",
        "allocations",
        "decisions.resource",
        CLOCK,
    )

    max_steps: int = 8
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is told what requests lacked, and whether any ran or waited in a step."""
        queues = ("steps.num_running", "steps.num_waiting")
        return has_decisions(trace) and any(knows(trace, queue) for queue in queues)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding for each run of steps, in order of time."""
        idle = streaks(
            formed(trace),
            pl.col("num_tokens") == 0,
            pl.col("num_running", "num_waiting", "kv_blocks_total").max(),
            last_ns=pl.col("ts_ns").max(),
        )
        is_stuck = (pl.col("num_running").fill_null(0) > 0) | (
            pl.col("num_waiting").fill_null(0) > 0
        )
        runs = idle.filter(pl.col("num_steps") > self.max_steps, is_stuck).sort("ts_ns", "rank")
        rows = runs.head(self.limit).collect().to_dicts()
        found = [_standing(row, trace, pool) for row in rows for pool in POOLED]
        return [self._finding(row) for row in found if _is_deadlock(row)]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        holders: list[dict[str, Any]] = row["holders"]
        held = sum(each["num_held"] for each in holders)
        named = ", ".join(f"{each['owner']} ({each['num_held']:,})" for each in holders[:NAMED])
        unit = POOLED[row["pool"]]
        of = f" of {row['pool_size']:,}" if row["pool_size"] else ""
        message = (
            f"{times(row['num_steps'], 'step')} running ({row['step']} to {row['last_step']}, "
            f"{duration(row['end_ns'] - row['ts_ns'])}) computed nothing: {len(holders):,} "
            f"requests hold {held:,}{of} {unit} and lack more, or wait for those who do: {named}"
            f"{', ...' if len(holders) > NAMED else ''}"
        )
        lacking = [each for each in holders if each["lacks"]]
        counted = "blocks" if row["pool"] == "kv-block" else "tokens"
        evidence: Evidence = {
            "run_steps": row["num_steps"],
            "holders": len(holders),
            f"held_{counted}": held,
            f"pool_{counted}": row["pool_size"],
            "holders that lack more": len(lacking),
            "first that lacks more": lacking[0]["owner"],
            f"needed_{counted}": lacking[0]["needed"],
        }
        at = {**row, "request": lacking[0]["owner"]}
        return finding(self, message, FIX, at=at, evidence=evidence)


def _is_deadlock(row: Mapping[str, Any]) -> bool:
    return len(row["holders"]) > 1 and any(each["lacks"] for each in row["holders"])


def _standing(run: dict[str, Any], trace: Trace, pool: str) -> dict[str, Any]:
    """A run of steps with its `holders`: owner, num_held, whether it lacks more, and how much.

    And the pool of which they hold it, with its size where that is told in the same unit.
    """
    until = (pl.col("ts_ns").clip(-FAR_NS, FAR_NS) <= run["last_ns"]) & (
        pl.col("rank") == run["rank"]
    )
    held = (
        ownerships(trace)
        .filter(pl.col("rank") == run["rank"], pl.col("resource") == pool)
        .filter(pl.col("from_ns") <= run["last_ns"], pl.col("to_ns") > run["last_ns"])
        .group_by("owner")
        .agg(num_held=pl.len().cast(pl.Int64))
    )
    told = (
        trace.decisions.filter(until, pl.col("subject_kind") == "request")
        .group_by(owner="subject")
        .agg(pl.col("verdict", "resource", "needed").sort_by("ts_ns", "needed").last())
    )
    lacks = (pl.col("verdict") == "deferred") & (pl.col("resource") == pool)
    holders = (
        held.join(told, on="owner", how="left")
        .with_columns(lacks=lacks.fill_null(value=False))
        .sort("num_held", "owner", descending=[True, False])
    )
    size = run["kv_blocks_total"] if pool == "kv-block" else None
    return run | {"holders": holders.collect().to_dicts(), "pool": pool, "pool_size": size}
