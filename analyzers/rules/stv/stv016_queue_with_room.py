"""queue-with-room: requests wait, report after report, while most of the KV cache is unused.

## What it finds
Reports of an engine's log (or counters), one after the other for at least `min_ns` and
`min_reports`, in each of which requests wait, at most `max_usage` of the KV cache is used, and no
more run than in the report before. Prompts of a burst that are being worked on are no finding: then
the number that run grows. So reports of a prefill are left out, and where an interval had prompts
in it, exactly as many have to run as before, as they do at a limit. At a limit the number may also
vary a little, as some leave and others are admitted: `near_limit` of the most that ever ran count
as at the limit.

`min_ns` spans two reports of vLLM, which come every 10 s: a burst that is being admitted is over by
then. It is not a share of the log, because a log may be any part of a run.

Reports of requests that run while no token is computed are left out: no limit holds those back
(STV021).

Where the log says that another pool is full (SGLang's `mamba usage`, say), that is named, and the
advice is about that pool.

A log says how many wait and not why. Where steps were recorded with their running slots and blocks,
STV009 and STV010 say more, and this rule leaves them to those.

## Why it hurts
There is memory for the requests that wait, and they get no first token. At its worst nobody runs
any more: health checks pass, and the engine serves nothing until a restart.

## Example
    9 reports running (1 min 20 s) say that up to 6 requests wait while at most 0.0% of the KV cache
    is used and 0 run

## How to fix
Look at how many run. Always the same number: it is a limit, `--max-num-seqs` or
`--max-running-requests`, or requests that a client keeps open; raise it while memory is left. None:
something holds the head of the queue back, and nobody behind it is looked at: a prompt longer than
the pool (STV014), a grammar or an adapter that is not ready, KV that was to be loaded and never
came.

## References
vLLM issues 45414 (nobody runs, 5 to 6 wait, 0.0% used, for 9 minutes), 39734, 45388, and 11517
(one runs, three wait, 3% used).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import CLOCK, any_row
from stepscope.analyzers.views.loads import loads
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

FIX_LIMIT = (
    "if always as many run, raise the limit on them (--max-num-seqs, --max-running-requests) "
    "while there is memory; else see what holds the head of the queue back"
)
FIX_POOL = (
    "give the pool that is full more room (of SGLang, --max-mamba-cache-size, "
    "--mamba-full-memory-ratio or --swa-full-tokens-ratio), or admit fewer requests; raising the "
    "limit on running requests does not help"
)
FIX_NOBODY = (
    "see what the head of the queue lacks, since nobody behind it is looked at: a prompt longer "
    "than the pool, a grammar or adapter that is not ready, KV that was to be loaded"
)


@dataclass(frozen=True, slots=True)
class QueueWithRoom:
    """Requests waited for `min_ns` and `min_reports` with at most `max_usage` of the KV used."""

    code: ClassVar[str] = "STV016"
    name: ClassVar[str] = "queue-with-room"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (CLOCK,)

    max_usage: float = 0.5
    min_reports: int = 3
    min_ns: int = 10 * SECOND
    near_limit: float = 0.85
    full_pool: float = 0.9
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether a log or counters say how many run and wait, and how full the KV is."""
        return any_row(_reports(trace))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such runs, placed at the longest."""
        running = pl.col("num_running")
        before = running.shift(1).over("rank").fill_null(running)
        has_prompts = (pl.col("prompt_rate") > 0).fill_null(value=False)
        is_near = running >= self.near_limit * running.max().over("rank")
        is_hung = ((pl.col("decode_rate") == 0) & ~has_prompts & (running > 0)).fill_null(
            value=False
        )
        at_a_limit = ((running == before) | is_near) & pl.col("step").is_null()
        waits = (
            (pl.col("num_waiting") > 0)
            & (pl.col("kv_usage") <= self.max_usage)
            & ~is_hung
            & pl.when(has_prompts).then(at_a_limit).otherwise((running <= before) | at_a_limit)
        )
        lasted = pl.col("end_ns") - pl.col("ts_ns")
        runs = streaks(
            _reports(trace),
            waits,
            pl.col("num_waiting", "kv_usage", "num_running", "pool_usage").max(),
            pool=pl.col("pool").sort_by("pool_usage", "pool", nulls_last=False).last(),
        ).filter(pl.col("num_steps") >= self.min_reports, lasted >= self.min_ns)
        rows = worst_of_each_rank(runs).sort("rank").collect()
        return each(self, rows, self._finding, FIX_LIMIT, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        lasted_ns, running = row["end_ns"] - row["ts_ns"], int(row["num_running"])
        message = (
            f"{times(row['num_steps'], 'report')} running ({duration(lasted_ns)}) say that up to "
            f"{times(int(row['num_waiting']), 'request')} wait while at most "
            f"{row['kv_usage']:.1%} of the KV cache is used and {running:,} run"
        )
        is_full = (row["pool_usage"] or 0) >= self.full_pool
        if is_full:
            message += f"; {row['pool']} is {row['pool_usage']:.1%}"
        evidence: Evidence = {
            "longest run_reports": row["num_steps"],
            "reports": row["all_steps"],
            "lasted_ns": lasted_ns,
            "waiting at most": int(row["num_waiting"]),
            "running at most": running,
            "used_share": round(row["kv_usage"], 4),
        }
        fix = FIX_POOL if is_full else FIX_LIMIT if running else FIX_NOBODY
        return finding(self, message, fix, at=row, evidence=evidence, count=row["count"])


def _reports(trace: Trace) -> pl.LazyFrame:
    """What logs and counters say of queue and KV cache together."""
    known = pl.all_horizontal(pl.col("num_running", "num_waiting", "kv_usage").is_not_null())
    return loads(trace).filter(known, ~pl.col("is_recorded")).with_columns(end_ns="ts_ns")
