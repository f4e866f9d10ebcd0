"""no-progress: requests run, report after report, and no token is computed.

## What it finds
Consecutive reports of an engine's log, or steps, for at least `min_ns` and `min_reports`, in which
requests run and no token is generated. Either

- no prompt token is computed, and the use of the KV cache does not change (it would grow while a
  long prompt is computed). If a log that reports every few seconds does not report the use of the
  KV cache, `min_prompt_ns` is required;
- or prompts are computed for all of `min_prompt_ns`, and no request gets a token: the same prompts
  are computed again and again.

`min_ns` is three report intervals of vLLM (10 s each); `min_prompt_ns` is longer than the prefill
of the longest prompts takes. Neither is a share of the run: in a short log a slow engine would look
dead, and in a long log a stall of minutes would be missed. Where a recording has KV blocks, STV010
and KVB008 find steps that schedule nothing by their number, in runs of any length.

Requests that wait while none runs count as well: in a recording, in consecutive steps that schedule
nothing; in a log, for at least `min_prompt_ns`, because they may wait for a grammar to be compiled
or for KV to be loaded. The message names the request that owns most KV blocks in that time, which
may itself wait for something that never comes. It also counts the preemptions in that time, and
says if they released no KV blocks: then no request can continue.

An engine that never generates (embeddings, scores) is not judged.

Of a log without a clock the number of reports tells: `min_untimed` of them in a row, and
`min_untimed_prompts` where prompts are computed or none runs.

## Why it hurts
The server accepts requests and answers health checks, and no user gets another token. The queue
grows until clients time out. Only a restart ends it.

## Example
    36 reports (350.0 s): 8 requests run and no token is computed; up to 35 wait, the KV cache is
    52.0% full

    5,990 steps (59.9 s): 8 requests wait and no token is computed; the KV cache is 100.0% full, r7
    owns 8 KV blocks, 41,923 preemptions released no KV block

## How to fix
See what the engine's processes do: `py-spy dump --pid PID` of each, on all ranks. Ranks in
different collectives wait for each other; a worker that died leaves the others in a barrier. Where
prompts are computed again and again, see which requests are preempted each time, and why.

## References
vLLM issues 2731, 52319, 42897 (requests run at 0.0 tokens/s for minutes) and 57841 (the head of the
queue needs blocks that a request holds which waits for its KV); vllm-ascend issue 16315 (every step
preempts all that it admitted).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.loads import loads
from stepscope.analyzers.views.ownership import POOLED, ownerships
from stepscope.analyzers.views.streaks import streaks, worst_of_each_rank
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "dump the stacks of the engine's processes on all ranks (py-spy dump --pid PID): ranks in "
    "different collectives wait for each other, a dead worker leaves the others in a barrier"
)
FIX_PREEMPTED = (
    "release the KV blocks of a preempted request before the next one is admitted; see why "
    "requests are admitted again and preempted in the same step"
)
FIX_HELD = (
    "see what the owner of the blocks waits for (stepscope why TRACE REQUEST): it computes nothing "
    "and blocks the others; preempt it, or let a request that fits pass the head of the queue"
)
FIX_WAITS = (
    "see what the head of the queue lacks, because nothing runs that could free it: its prompt may "
    "be longer than the KV pool, or its grammar, adapter or KV not loaded yet"
)
FIX_PROMPTS = (
    "see which requests are preempted each time and why: their prompts are computed again and "
    "again; give the KV cache more blocks, or let fewer requests run"
)


@dataclass(frozen=True, slots=True)
class NoProgress:
    """Requests ran for `min_ns` and `min_reports`, and no token was generated."""

    code: ClassVar[str] = "STV021"
    name: ClassVar[str] = "no-progress"
    severity: ClassVar[Severity] = Severity.ERROR
    needs: ClassVar[tuple[str, ...]] = ()

    min_ns: int = 30 * SECOND
    min_prompt_ns: int = 180 * SECOND
    min_reports: int = 3
    min_untimed: int = 12
    min_untimed_prompts: int = 24
    most_kv_change: float = 0.005
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether reports say how many run and how many tokens are generated, and any is."""
        generates = any_row(_reports(trace).filter(pl.col("decode_rate") > 0))
        timeless = _reports(trace).filter(pl.col("step").is_null())
        return generates and (trace.manifest.clock.has_times or any_row(timeless))

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank, with the number of such times, placed at the longest."""
        has_requests = (pl.col("num_running") > 0) | (pl.col("num_waiting") > 0)
        is_quiet = has_requests & (pl.col("decode_rate") == 0)
        has_prompts = pl.col("prompt_rate") > 0
        usage = pl.col("kv_usage")
        totals = (
            pl.col("num_running", "num_waiting", "kv_usage").max(),
            pl.col("is_recorded").first(),
            (usage.max() - usage.min()).alias("kv_change"),
        )
        reports = _reports(trace)
        has_times = trace.manifest.clock.has_times
        if has_times:
            is_long, is_very_long = _lasted() >= self.min_ns, _lasted() >= self.min_prompt_ns
        else:
            reports = reports.filter(pl.col("step").is_null())
            is_long = pl.col("num_steps") >= self.min_untimed
            is_very_long = pl.col("num_steps") >= self.min_untimed_prompts
        only_waits = ~pl.col("is_recorded") & (pl.col("num_running") == 0)
        stalled = streaks(reports, is_quiet & ~has_prompts, *totals).filter(
            pl.when(only_waits)
            .then(is_very_long)
            .when(pl.col("step").is_not_null())
            .then(is_long)
            .when(pl.col("kv_change").is_null())
            .then(is_very_long)
            .otherwise((pl.col("kv_change") <= self.most_kv_change) & is_long)
        )
        repeated = streaks(reports, is_quiet & has_prompts, *totals).filter(is_very_long)
        found = pl.concat(
            [
                stalled.with_columns(has_prompts=pl.lit(value=False)),
                repeated.with_columns(has_prompts=pl.lit(value=True)),
            ]
        ).filter(pl.col("num_steps") >= self.min_reports)
        rows = worst_of_each_rank(found).sort("rank").collect()
        owners, preempted = _most_blocks(trace, rows), _preempted(trace, rows)

        def found_at(row: Mapping[str, Any]) -> Finding:
            rank = row["rank"]
            return self._finding(
                row, has_times, owners.get(rank, ("", 0)), preempted.get(rank, (0, None))
            )

        return each(self, rows, found_at, FIX, self.limit)

    def _finding(
        self,
        row: Mapping[str, Any],
        has_times: bool,
        most_blocks: tuple[str, int],
        preempted: tuple[int, int | None],
    ) -> Finding:
        lasted_ns = row["end_ns"] - row["ts_ns"]
        what = (
            "only prompts are computed, and no request gets a token"
            if row["has_prompts"]
            else "no token is computed"
        )
        running, waiting = int(row["num_running"] or 0), int(row["num_waiting"] or 0)
        run = f"{times(running, 'request')} run" if running else f"{times(waiting, 'request')} wait"
        owner, num_blocks = most_blocks
        num_preempted, num_released = preempted
        gives_none = " released no KV block" if num_released == 0 else ""
        parts = [
            f"up to {waiting:,} wait" if running and waiting else "",
            "" if row["kv_usage"] is None else f"the KV cache is {row['kv_usage']:.1%} full",
            f"{owner} owns {times(num_blocks, 'KV block')}" if owner else "",
            f"{times(num_preempted, 'preemption')}{gives_none}" if num_preempted else "",
        ]
        more = ", ".join(part for part in parts if part)
        reports = times(row["num_steps"], "report" if row["step"] is None else "step")
        lasted = f" ({duration(lasted_ns)})" if has_times else ""
        message = f"{reports}{lasted}: {run} and {what}{'; ' if more else ''}{more}"
        evidence: Evidence = {
            "longest run_reports": row["num_steps"],
            "lasted_ns": lasted_ns if has_times else None,
            "running at most": running,
            "waiting at most": waiting,
            "owner of most blocks": owner or None,
            "its blocks": num_blocks or None,
            "preemptions": num_preempted or None,
            "blocks given back": num_released,
            "used_share": None if row["kv_usage"] is None else round(row["kv_usage"], 4),
        }
        fix = FIX
        if row["has_prompts"]:
            fix = FIX_PROMPTS
        elif num_preempted and gives_none:
            fix = FIX_PREEMPTED
        elif not running:
            fix = FIX_HELD if owner else FIX_WAITS
        return finding(self, message, fix, at=row, evidence=evidence, count=row["count"])


def _most_blocks(trace: Trace, rows: pl.DataFrame) -> dict[int, tuple[str, int]]:
    """Who owned most KV blocks of each rank all the time, and how many."""
    if rows.is_empty() or not trace.has("allocations"):
        return {}
    spans = rows.lazy().select("rank", "ts_ns", "end_ns")
    owned = (
        ownerships(trace)
        .filter(pl.col("resource").is_in(list(POOLED)), pl.col("owner").is_not_null())
        .join(spans, on="rank")
        .filter(pl.col("from_ns") <= pl.col("ts_ns"), pl.col("to_ns") >= pl.col("end_ns"))
        .group_by("rank", "owner")
        .agg(num=pl.len())
        .sort("num", "owner")
        .group_by("rank")
        .last()
        .collect()
    )
    return {rank: (owner, num) for rank, owner, num in owned.select("rank", "owner", "num").rows()}


def _preempted(trace: Trace, rows: pl.DataFrame) -> dict[int, tuple[int, int | None]]:
    """The preemptions of each rank, and the KV blocks that were released.

    The number of blocks is None if allocations are not recorded.
    """
    if rows.is_empty() or not trace.has("lifecycle"):
        return {}
    released = pl.col("resource").is_in(list(POOLED)), pl.col("op").is_in(["release", "let-go"])
    has_allocations = trace.has("allocations")
    events = trace.table("lifecycle").filter(pl.col("event") == "preempt")
    counts: dict[int, tuple[int, int | None]] = {}
    for rank, start_ns, end_ns in rows.select("rank", "ts_ns", "end_ns").iter_rows():
        within = (pl.col("rank") == rank) & pl.col("ts_ns").is_between(start_ns, end_ns)
        num = events.filter(within).select(pl.len()).collect().item()
        if num:
            given = trace.table("allocations").filter(within, *released).select(pl.len())
            counts[rank] = num, given.collect().item() if has_allocations else None
    return counts


def _lasted() -> pl.Expr:
    return pl.col("end_ns") - pl.col("ts_ns")


def _reports(trace: Trace) -> pl.LazyFrame:
    known = pl.all_horizontal(pl.col("num_running", "decode_rate").is_not_null())
    return loads(trace).filter(known).with_columns(end_ns="ts_ns")
