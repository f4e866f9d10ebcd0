"""load-imbalance: some data-parallel ranks have far more requests than others, for long.

## What it finds
Ranks of one engine that report how many requests they run and have waiting. The rule fires when the
rank with most requests has at least `max_ratio` times as many as the rank with fewest, and at least
`min_reqs` more, in every report for at least `min_ns`; in a shorter run, for `min_share` of the run
and `min_reports` reports. A rank that has not reported for `stale_ns` is not compared, and no time
counts after the last report of a rank. Prefill servers are not compared with decode servers. There
is one finding, placed at the worst moment, with the requests of every rank.

It also fires when a rank with an empty queue computes at most 1/`token_ratio` of the prompt tokens
of a rank that has requests waiting, for at least `min_token_ns`; in a shorter run, for
`min_token_share` of the run and `min_token_reports` reports. Ranks can have equal numbers of
requests whose lengths differ.

Engines report at least every 10 s, so `min_ns` spans two reports. In a run of seconds, where every
step is a report, the share decides: an imbalance that lasts for a quarter of the run is no short
burst that the balancer has yet to even out. Prompt tokens vary from step to step, so `min_token_ns`
is six report intervals and its share is a half. `stale_ns` is three missed reports.

## Why it hurts
The ranks of a data-parallel engine often wait for each other in every step: all of them take as
long as the fullest. Requests wait there while running slots and KV are free next door.

## Example
    for 1.8 min rank 0 had 168 requests (117 waiting) and rank 5 had 20 (none waiting): 8.4 times as
    many

## How to fix
Balance by what ranks have to do now, requests that run and wait, better still tokens, and not in
turn: outputs differ in length. See that the balancer's numbers are fresh, and that sticky sessions
or prefix-aware routing do not win over load.

## References
vLLM issues 36748 (100 and more wait on a few of 8 ranks), 40279 and 48808, and pull request 47420
on ties that always go to the same rank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.declared import is_one_run
from stepscope.analyzers.views.known import CLOCK
from stepscope.analyzers.views.loads import loads
from stepscope.analyzers.views.streaks import streaks
from stepscope.ingest.times import SECOND
from stepscope.ingest.trace import Trace

FIX = (
    "give a request to the rank with the least to do now, by numbers that are fresh, "
    "rather than in turn"
)
LIMIT_RANKS = 256
NAMES = ("load", "waiting", "tokens")


@dataclass(frozen=True, slots=True)
class LoadImbalance:
    """One rank had `max_ratio` times the requests of another for a long time."""

    code: ClassVar[str] = "COL010"
    name: ClassVar[str] = "load-imbalance"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = (CLOCK,)

    max_ratio: float = 2.0
    min_reqs: int = 8
    min_ns: int = 10 * SECOND
    min_share: float = 0.25
    min_reports: int = 8
    stale_ns: int = 30 * SECOND
    token_ratio: float = 4.0
    min_token_ns: int = 60 * SECOND
    min_token_share: float = 0.5
    min_token_reports: int = 20

    def applies(self, trace: Trace) -> bool:
        """Tell whether two ranks or more, alike and of one engine, say how much they have to do."""
        is_several = 2 <= len(_ranks(trace)) <= LIMIT_RANKS
        return is_one_run(trace) and is_several and _are_alike(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """At most one finding."""
        if not self.applies(trace):
            return []
        moments = self._moments(trace)
        uneven = (pl.col("most") >= self.max_ratio * pl.col("fewest")) & (
            pl.col("most") - pl.col("fewest") >= self.min_reqs
        )
        lasted = pl.col("end_ns") - pl.col("ts_ns")
        worst = pl.struct("load", "waiting", at_ns="ts_ns")
        runs = (
            streaks(
                moments,
                uneven,
                worst=worst.sort_by(pl.col("most") - pl.col("fewest"), -pl.col("ts_ns")).last(),
            )
            .filter(_is_long(trace, moments, self.min_ns, self.min_share, self.min_reports))
            .sort(lasted, -pl.col("ts_ns"))
            .collect()
        )
        if runs.is_empty():
            return self._of_tokens(trace, moments)
        return [self._finding(runs.row(-1, named=True), runs.height, _ranks(trace))]

    def _of_tokens(self, trace: Trace, moments: pl.LazyFrame) -> list[Finding]:
        """At most one finding about ranks that compute few prompt tokens next to a queue."""
        ranks = _ranks(trace)
        tokens, waiting = pl.col("tokens"), pl.col("waiting")
        most = tokens.list.max()
        few = [tokens.list.get(at) * self.token_ratio <= most for at in range(len(ranks))]
        no_queue = [waiting.list.get(at) == 0 for at in range(len(ranks))]
        idle = pl.any_horizontal(a & b for a, b in zip(few, no_queue, strict=True))
        queued = pl.any_horizontal(
            (tokens.list.get(at) == most) & (waiting.list.get(at) > 0) for at in range(len(ranks))
        )
        lasted = pl.col("end_ns") - pl.col("ts_ns")
        runs = (
            streaks(
                moments,
                (most > 0) & idle & queued,
                worst=pl.struct("tokens", "waiting").sort_by(-tokens.list.min(), -pl.col("ts_ns"))
                .last(),
            )
            .filter(
                _is_long(
                    trace, moments, self.min_token_ns, self.min_token_share, self.min_token_reports
                )
            )
            .sort(lasted, -pl.col("ts_ns"))
            .collect()
        )  # fmt: skip
        if runs.is_empty():
            return []
        row = runs.row(-1, named=True)
        had = dict(zip(ranks, row["worst"]["tokens"], strict=True))
        queues = dict(zip(ranks, row["worst"]["waiting"], strict=True))
        busy = max(ranks, key=lambda rank: had[rank])
        idle_rank = min((rank for rank in ranks if not queues[rank]), key=lambda rank: had[rank])
        lasted_ns = row["end_ns"] - row["ts_ns"]
        message = (
            f"for {duration(lasted_ns)} rank {idle_rank} with an empty queue computed "
            f"{int(had[idle_rank]):,} prompt tokens a report and rank {busy} {int(had[busy]):,}, "
            f"where {times(int(queues[busy]), 'request')} wait"
        )
        evidence: Evidence = {
            "lasted_ns": lasted_ns,
            "times": runs.height,
            **{f"prompt tokens of rank {rank}": int(had[rank]) for rank in ranks[:16]},
        }
        place = {"ts_ns": row["ts_ns"], "end_ns": row["end_ns"], "rank": idle_rank}
        return [finding(self, message, FIX, at=place, evidence=evidence, count=runs.height)]

    def _moments(self, trace: Trace) -> pl.LazyFrame:
        """At each report of any rank what all of them last said: load, waiting, most, fewest.

        `end_ns` is the oldest of these reports: what a rank does after its last one is not known.
        """
        ranks = _ranks(trace)
        of_rank = {rank: pl.col("rank") == rank for rank in ranks}
        at = pl.col("ts_ns")
        heard = {rank: pl.when(is_its).then(at).forward_fill() for rank, is_its in of_rank.items()}
        last = {
            f"{name} {rank}": pl.when(at - heard[rank] <= self.stale_ns).then(
                pl.when(of_rank[rank]).then(name).forward_fill()
            )
            for rank in ranks
            for name in NAMES
        }
        lists = {name: pl.concat_list(f"{name} {rank}" for rank in ranks) for name in NAMES}
        loads_now = [pl.col(f"load {rank}") for rank in ranks]
        is_known = pl.all_horizontal(each.is_not_null() for each in loads_now)
        return (
            _told(trace)
            .sort("ts_ns", "rank")
            .with_columns(**last, end_ns=pl.min_horizontal(heard.values()))
            # Ranks that report at one moment have no order: only what all of them say is so.
            .unique("ts_ns", keep="last", maintain_order=True)
            .filter(is_known)
            .select(
                pl.lit(None, pl.Int32).alias("rank"),
                pl.lit(None, pl.Int64).alias("step"),
                "ts_ns",
                "end_ns",
                most=pl.max_horizontal(loads_now),
                fewest=pl.min_horizontal(loads_now),
                **lists,
            )
        )

    def _finding(self, row: Mapping[str, Any], count: int, ranks: list[int]) -> Finding:
        had = dict(zip(ranks, row["worst"]["load"], strict=True))
        waiting = dict(zip(ranks, row["worst"]["waiting"], strict=True))
        most, fewest = max(ranks, key=lambda r: had[r]), min(ranks, key=lambda r: had[r])
        lasted_ns = row["end_ns"] - row["ts_ns"]
        ratio = f": {had[most] / had[fewest]:,.1f} times as many" if had[fewest] else ""
        message = (
            f"for {duration(lasted_ns)} rank {most} had {times(int(had[most]), 'request')} "
            f"{_waiting(waiting[most])} and rank {fewest} had {int(had[fewest]):,} "
            f"{_waiting(waiting[fewest])}{ratio}"
        )
        evidence: Evidence = {
            "lasted_ns": lasted_ns,
            "times": count,
            **{f"requests of rank {rank}": int(had[rank]) for rank in ranks[:16]},
        }
        place = {"ts_ns": row["ts_ns"], "end_ns": row["end_ns"], "rank": most}
        return finding(self, message, FIX, at=place, evidence=evidence, count=count)


def _is_long(
    trace: Trace, moments: pl.LazyFrame, min_ns: int, min_share: float, min_reports: int
) -> pl.Expr:
    """Whether a streak lasted for `min_ns`, or for a share of the run and some reports.

    While a run is still being recorded, its share is not known.
    """
    at = pl.col("ts_ns")
    lasted = pl.col("end_ns") - at
    is_long = lasted >= min_ns
    if trace.manifest.live_ranks:
        return is_long
    whole_ns = moments.select(at.max() - at.min()).collect().item() or 0
    return is_long | ((lasted >= min_share * whole_ns) & (pl.col("num_steps") >= min_reports))


def _waiting(count: float | None) -> str:
    if count is None:
        return "(how many of them wait is not told)"
    return f"({int(count):,} waiting)" if count else "(none waiting)"


def _told(trace: Trace) -> pl.LazyFrame:
    load = pl.col("num_running") + pl.col("num_waiting").fill_null(0)
    return (
        loads(trace)
        .select("rank", "ts_ns", load=load, waiting="num_waiting", tokens="prompt_rate")
        .filter(pl.col("load").is_not_null())
    )


def _ranks(trace: Trace) -> list[int]:
    ranks = _told(trace).select(pl.col("rank").unique().sort()).collect()["rank"]
    return [int(rank) for rank in ranks if rank is not None]


def _are_alike(trace: Trace) -> bool:
    """Whether all ranks do the same work: prefill, decode, or both."""
    queues = trace.counters.filter(pl.col("name").is_in(["#inflight-req", "#transfer-req"]))
    apart = queues.group_by("rank").agg(pl.col("name").unique().sort()).collect()
    return apart.is_empty() or (
        apart["name"].n_unique() == 1 and set(apart["rank"]) >= set(_ranks(trace))
    )
