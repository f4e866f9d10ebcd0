"""head-of-line-blocked: a request waited far longer than it ran while there was room for it.

## What it finds
Requests that waited more than `max_ratio` times as long as they were in batches, counting only time
in which there was room for them, in one of two ways:

- they were left out because of their place in the queue alone, the head of it lacked KV blocks or
  token budget, and what was free then was enough for them;
- fewer requests ran than there are slots, because the engine runs fewer at once than it has slots,
  or the engine is made to run one at a time, however wide a batch the device could take.

All such requests of a rank are one finding, placed at the one that waited longest.

## Why it hurts
A small request pays for the one in front of it. Throughput hardly shows it, since the device has
something to do; the tail does, and the time to admission.

## Example
    3 requests waited while there was room: worst req-03, 6.5 s with room against 2.1 s in batches,
    because one request ran at a time

## How to fix
Run as many requests at once as there are slots for. When the head of the queue does not fit, let
others that fit pass it for a bounded number of times, or run its prompt in chunks.

## References
The report on multiplexing an expert-parallel engine, whose protocol served one sequence at a time:
the last of 4 requests waited for the other 3 (605 s, then 7 s); head-of-line blocking by long
prompts in vLLM.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from stepscope.analyzers.batches import formed
from stepscope.analyzers.declared import block_size, num_slots, seats
from stepscope.analyzers.finding import Evidence, Finding, Severity
from stepscope.analyzers.known import knows
from stepscope.analyzers.occupancy import FAR_NS
from stepscope.analyzers.requests import (
    ENDS,
    LEAVES,
    REQUEST,
    events,
    has_arrivals,
    requests,
    served,
    waits,
)
from stepscope.analyzers.rule import each, finding
from stepscope.analyzers.wording import duration, times

if TYPE_CHECKING:
    from stepscope.ingest.trace import Trace

FIX = (
    "run as many requests at once as there are slots for; let those that fit pass a head of the "
    "queue that does not, a bounded number of times"
)
_WHY = (
    "decisions.resource",
    "decisions.needed",
    "decisions.available",
    "decisions.holder",
    "lifecycle.prompt_len",
)


@dataclass(frozen=True, slots=True)
class HeadOfLineBlocked:
    """A request waited, with room for it, `max_ratio` times as long as it was in batches."""

    code: ClassVar[str] = "STV006"
    name: ClassVar[str] = "head-of-line-blocked"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request", "steps.dur_ns", "batch_rows")

    max_ratio: float = 2.0
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known what held requests back, or how many slots there are."""
        tells_why = knows(trace, *_WHY)
        tells_slots = seats(trace) == 1 or num_slots(trace) is not None
        room = tells_why or (tells_slots and knows(trace, "steps.num_running"))
        return room and has_arrivals(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and way, with the number of requests that were blocked."""
        known = requests(trace)
        usual = served(trace)
        median = usual.group_by("rank").agg(usual_ns=pl.col("served_ns").median())
        ways = [_behind_a_head(trace, known), _beside_free_slots(trace)]
        worst = ("blocked_ns", "request", "served_ns", "ts_ns", "end_ns", "step", "behind")
        blocked = (
            pl.concat(ways)
            .join(usual, on=REQUEST, how="left")
            .join(median, on="rank", how="left")
            .filter(
                pl.col("blocked_ns")
                > self.max_ratio * pl.coalesce(pl.col("served_ns"), pl.col("usual_ns"))
            )
            .group_by("rank", "way")
            .agg(
                pl.col(worst).sort_by(worst).last(),
                all_blocked_ns=pl.col("blocked_ns").sum(),
                count=pl.len(),
            )
            .sort("rank", "way")
        )
        return each(self, blocked.collect(), self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        why = {
            "behind": f"{row['behind']} was before it and did not fit",
            "slots": "fewer ran at once than there are slots",
            "serial": "one request ran at a time",
        }[row["way"]]
        message = (
            f"{times(row['count'], 'request')} waited while there was room: worst "
            f"{row['request']}, {duration(row['blocked_ns'])} with room against "
            f"{duration(row['served_ns'] or 0)} in batches, because {why}"
        )
        evidence: Evidence = {
            "requests": row["count"],
            "worst_blocked_ns": row["blocked_ns"],
            "worst_served_ns": row["served_ns"] or 0,
            "blocked_ns": row["all_blocked_ns"],
            "behind": row["behind"],
        }
        return finding(self, message, FIX, at=row, evidence=evidence, count=row["count"])


_COLUMNS = (*REQUEST, "step", "ts_ns", "end_ns", "blocked_ns", "behind", "way")


def _behind_a_head(trace: Trace, known: pl.LazyFrame) -> pl.LazyFrame:
    """How long requests stood behind one that did not fit into what they would have fitted into."""
    size = block_size(trace)
    prompts = (
        events(trace)
        .filter(pl.col("event") == "arrive")
        .group_by(REQUEST)
        .agg(pl.col("prompt_len", "max_tokens").max().clip(0, FAR_NS))
    )
    told = _told(trace)
    is_short = pl.col("resource").is_in(["kv-block", "token-budget"])
    heads = told.filter(is_short, pl.col("needed") > pl.col("available")).select(
        "rank",
        "ts_ns",
        room="available",
        short_of="resource",
        behind="request",
        told_until_ns="end_ns",
    )
    came_back = known.select(*REQUEST, "num_preempted")
    most = pl.col("prompt_len") + pl.col("max_tokens").fill_null(0)
    num_tokens = pl.when(pl.col("num_preempted") > 0).then(most).otherwise("prompt_len")
    num_blocks = (num_tokens + (size - 1)) // size if size else pl.lit(None, pl.Int64)
    need = pl.when(pl.col("short_of") == "kv-block").then(num_blocks).otherwise(num_tokens)
    return (
        told.filter(pl.col("resource") == "queue")
        .rename({"holder": "behind"})
        .sort("ts_ns")
        .join_asof(
            heads.sort("ts_ns"), on="ts_ns", by=["rank", "behind"], check_sortedness=False
        )
        .join(prompts, on=REQUEST, how="left")
        .join(came_back, on=REQUEST, how="left")
        .filter(pl.col("told_until_ns") > pl.col("ts_ns"), need <= pl.col("room"))
        .with_columns(lasted=pl.min_horizontal("end_ns", "told_until_ns") - pl.col("ts_ns"))
        .group_by(REQUEST)
        .agg(
            pl.col("step", "ts_ns").min(),
            pl.col("end_ns").max(),
            blocked_ns=pl.col("lasted").sum(),
            behind=pl.col("behind").sort_by("ts_ns", "behind").first(),
            way=pl.lit("behind"),
        )
        .select(_COLUMNS)
    )  # fmt: skip


def _told(trace: Trace) -> pl.LazyFrame:
    """Why requests were left out, from ts_ns until something else was told, or happened: end_ns."""
    is_left_out = (pl.col("subject_kind") == "request") & (pl.col("verdict") == "deferred")
    columns = ("resource", "needed", "available", "holder")
    told = trace.decisions.filter(is_left_out, pl.col("ts_ns").is_not_null()).select(
        "rank", pl.col("subject").alias("request"), "step", *columns,
        pl.col("ts_ns").clip(-FAR_NS, FAR_NS),
    )  # fmt: skip
    left = events(trace).filter(pl.col("event").is_in([*LEAVES, *ENDS]))
    left = left.select(*REQUEST, "step", "ts_ns")
    end_ns = pl.col("ts_ns").shift(-1).over(REQUEST)
    return (
        pl.concat([told, left], how="diagonal")
        .sort(*REQUEST, "ts_ns", *columns, nulls_last=True)
        .with_columns(end_ns=end_ns)
        .filter(pl.col("resource").is_not_null(), pl.col("end_ns") > pl.col("ts_ns"))
    )


def _beside_free_slots(trace: Trace) -> pl.LazyFrame:
    """How long requests waited for a place in batches that the engine keeps narrow."""
    is_serial = seats(trace) == 1
    num_usable = 2 if is_serial else num_slots(trace) or 0
    has_free = pl.col("num_running") < num_usable
    lasted = pl.when(has_free).then(pl.col("end_ns") - pl.col("ts_ns")).otherwise(0)
    steps = (
        formed(trace)
        .sort("rank", "ts_ns", "step", "end_ns")
        .with_columns(free_ns=lasted.cum_sum().over("rank"))
        .select("rank", "ts_ns", "free_ns")
        .sort("ts_ns")
    )
    found = waits(trace)
    for moment in ("from_ns", "to_ns"):
        until = steps.rename({"ts_ns": moment, "free_ns": f"free_{moment}"})
        found = found.sort(moment).join_asof(
            until, on=moment, by="rank", allow_exact_matches=False, check_sortedness=False
        )
    blocked = pl.col("free_to_ns").fill_null(0) - pl.col("free_from_ns").fill_null(0)
    return (
        found.group_by(REQUEST)
        .agg(
            pl.col("step").min(),
            ts_ns=pl.col("from_ns").min(),
            end_ns=pl.col("to_ns").max(),
            blocked_ns=blocked.sum(),
            behind=pl.lit(None, pl.String),
            way=pl.lit("serial" if is_serial else "slots"),
        )
        .select(_COLUMNS)
    )
