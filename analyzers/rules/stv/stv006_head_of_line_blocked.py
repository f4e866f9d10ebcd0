"""head-of-line-blocked: a request waited far longer than it ran while there was room for it.

## What it finds
Requests that waited more than `max_ratio` times as long as they were in batches. Only time in which
there was room for them counts, in one of two ways:

- they were not scheduled only because of their place in the queue: the head of the queue lacked KV
  blocks or token budget, and what was free was enough for them;
- fewer requests ran than there are slots, in an engine in which a request needs nothing but a slot
  (it has no pool of KV blocks).

An engine has no room when its last slot is taken, and is not known to have any if it does not
declare its slots.

An engine that runs one request at a time (one slot, or `max_num_seqs` of 1) makes every request
wait for the end of the one before it, however much memory is free. There, a request is reported if
it waited for more than `alone_ratio` of its own time in batches while another one ran and at least
half of the KV pool, if there is one, was free. Every request but the first waits for a whole other
request, which may be shorter; that is why the ratio is a half.

All such requests of a rank are one finding, placed at the one that waited longest, with the room
that there was for it.

## Why it hurts
A small request pays for the one in front of it. Throughput hardly shows it, since the device has
something to do; the tail does, and the time to admission.

## Example
    3 requests waited while there was room: worst req-03, 6.5 s with room against 2.1 s in batches;
    on average 3.0 of 4 slots were free

    4 requests waited while there was room: worst r62, 803.8 ms with room against 223.9 ms in
    batches; it needed 5 of 11 free KV blocks, and r55, which was before it, 13

    3 requests waited for the only slot: worst req-03, which waited 2.5 s for others to end and was
    in batches for 828.6 ms

## How to fix
Run as many requests at once as there are slots. When the head of the queue does not fit, let
requests that fit pass it a bounded number of times, or run its prompt in chunks. If the limit is
one request, raise it: a decode of several rows costs little more than that of a single row, and
short requests no longer wait for long ones to end.

## References
Engines that serve one sequence at a time, whatever they have room for; head-of-line blocking by
long prompts in vLLM (pull request 33499).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Evidence, Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.views.batches import formed, own_times
from stepscope.analyzers.views.declared import block_size, max_num_seqs, num_slots
from stepscope.analyzers.views.interval_union import covered, merged
from stepscope.analyzers.views.known import CLOCK, knows
from stepscope.analyzers.views.left_out import left_out
from stepscope.analyzers.views.requests import (
    REQUEST,
    events,
    has_arrivals,
    requests,
    served,
    waits,
)
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

FIX = (
    "run as many requests at once as there are slots for; let those that fit pass a head of the "
    "queue that does not, a bounded number of times"
)
FIX_ALONE = (
    "let several requests run at once (more slots, or a higher max_num_seqs), so that short "
    "requests need not wait for long ones to end"
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
    needs: ClassVar[tuple[str, ...]] = ("lifecycle.request", "steps.dur_ns", "batch_rows", CLOCK)

    max_ratio: float = 2.0
    alone_ratio: float = 0.5
    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether it is known what held requests back, and how many of the slots were taken.

        Where slots alone are what a request needs, decisions do not replace `num_running`: a
        request that waits beside a free slot is left out by no decision.
        """
        has_reasons = knows(trace, *_WHY)
        is_all = num_slots(trace) is not None and not knows(trace, "steps.kv_blocks_total")
        if is_all or _is_alone(trace):
            return knows(trace, "steps.num_running") and has_arrivals(trace)
        return has_reasons and has_arrivals(trace)

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per rank and way, with the number of requests that were blocked."""
        known = requests(trace)
        usual = served(trace)
        median = usual.group_by("rank").agg(usual_ns=pl.col("served_ns").median())
        ways = [_behind_a_head(trace, known), _beside_free_slots(trace), _one_by_one(trace)]
        ratio = pl.when(pl.col("way") == "alone").then(self.alone_ratio).otherwise(self.max_ratio)
        worst = ("blocked_ns", "request", "served_ns", "ts_ns", "end_ns", "step", *_ROOM)
        blocked = (
            pl.concat(ways)
            .join(usual, on=REQUEST, how="left")
            .join(median, on="rank", how="left")
            .filter(
                pl.col("blocked_ns") > ratio * pl.coalesce(pl.col("served_ns"), pl.col("usual_ns"))
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
        is_alone = row["way"] == "alone"
        blocked, served = duration(row["blocked_ns"]), duration(row["served_ns"] or 0)
        message = f"{times(row['count'], 'request')} waited "
        if is_alone:
            message += (
                f"for the only slot: worst {row['request']}, which waited {blocked} for others to "
                f"end and was in batches for {served}"
            )
        else:
            message += (
                f"while there was room: worst {row['request']}, {blocked} with room against "
                f"{served} in batches; {_room(row)}"
            )
        evidence: Evidence = {
            "requests": row["count"],
            "worst_blocked_ns": row["blocked_ns"],
            "worst_served_ns": row["served_ns"] or 0,
            "blocked_ns": row["all_blocked_ns"],
            "behind": row["behind"],
            "needed": row["need"],
            "free": row["room"],
        }
        fix = FIX_ALONE if is_alone else FIX
        return finding(self, message, fix, at=row, evidence=evidence, count=row["count"])


_ROOM = ("behind", "short_of", "need", "room", "head_need")
_COLUMNS = (*REQUEST, "step", "ts_ns", "end_ns", "blocked_ns", "way", *_ROOM)


def _room(row: Mapping[str, Any]) -> str:
    """What room there was: `it needed 5 of 11 free KV blocks, and r55, which was before it, 13`."""
    if row["way"] == "slots":
        return f"on average {row['room']:.1f} of {times(row['need'], 'slot')} were free"
    what = "KV block" if row["short_of"] == "kv-block" else "token"
    free = times(int(row["room"]), f"free {what}")
    before = f"{row['behind']}, which was before it, {row['head_need']:,}"
    return f"it needed {row['need']:,} of {free}, and {before}"


def _behind_a_head(trace: Trace, known: pl.LazyFrame) -> pl.LazyFrame:
    """How long requests stood behind one that did not fit into what they would have fitted into."""
    told = left_out(trace)
    queued = told.filter(pl.col("resource") == "queue").select(
        *REQUEST, "step", "ts_ns", behind="holder", from_ns="ts_ns", to_ns="end_ns"
    )
    needs = _needs(trace, known)
    stood = [_blocked(queued, told, needs, of) for of in ("kv-block", "token-budget")]
    return (
        pl.concat(stood)
        .group_by(REQUEST)
        .agg(
            pl.col("step", "ts_ns").min(),
            pl.col(_ROOM).sort_by("stood_ns", *_ROOM).last(),
            end_ns=pl.col("to_ns").max(),
            blocked_ns=pl.col("stood_ns").sum(),
            way=pl.lit("behind"),
        )
        .with_columns(pl.col("room").cast(pl.Float64))
        .select(_COLUMNS)
    )


def _needs(trace: Trace, known: pl.LazyFrame) -> pl.LazyFrame:
    """What each request needs to come in: rank, request, ended_ns, kv-block and token-budget.

    That is its prompt, and of one that comes back after a preemption all that it may have grown to.
    """
    size = block_size(trace)
    prompts = (
        events(trace)
        .filter(pl.col("event") == "arrive")
        .group_by(REQUEST)
        .agg(pl.col("prompt_len", "max_tokens").max().clip(0, FAR_NS))
    )
    most = pl.col("prompt_len") + pl.col("max_tokens").fill_null(0)
    num_tokens = pl.when(pl.col("num_preempted") > 0).then(most).otherwise("prompt_len")
    num_blocks = (num_tokens + (size - 1)) // size if size else pl.lit(None, pl.Int64)
    of = {"kv-block": num_blocks, "token-budget": num_tokens}
    return known.join(prompts, on=REQUEST).select(*REQUEST, "ended_ns", **of)


def _blocked(
    queued: pl.LazyFrame, told: pl.LazyFrame, needs: pl.LazyFrame, resource: str
) -> pl.LazyFrame:
    """Add stood_ns: how long requests stood behind one that lacked a resource which they did not.

    What was free changes while they stand: the heads' times are cut by who would have fitted, which
    few different needs do.
    """
    waited = (
        queued.join(needs, on=REQUEST, how="left")
        .with_columns(need=pl.col(resource), to_ns=pl.min_horizontal("to_ns", "ended_ns"))
        .filter(pl.col("need").is_not_null(), pl.col("from_ns") < pl.col("to_ns"))
        .select(*queued.collect_schema().names(), "need")
    )
    lacking = told.filter(
        pl.col("resource") == resource, pl.col("needed") > pl.col("available")
    ).select(
        "rank", behind="request", from_ns="ts_ns", to_ns="end_ns", room="available",
        head_need="needed",
    )  # fmt: skip
    fits = (
        waited.select(_BEHIND)
        .unique()
        .join(lacking, on=["rank", "behind"])
        .filter(pl.col("need") <= pl.col("room"))
    )
    room = fits.rename({"from_ns": "_since"}).drop("to_ns").sort("_since", "room", "head_need")
    return (
        covered(waited, merged(fits, _BEHIND), "stood_ns", _BEHIND)
        .filter(pl.col("stood_ns") > 0)
        .sort("to_ns")
        .join_asof(
            room, left_on="to_ns", right_on="_since", by=list(_BEHIND),
            allow_exact_matches=False, check_sortedness=False,
        )
        .with_columns(short_of=pl.lit(resource))
        .drop("_since", strict=False)
    )  # fmt: skip


_BEHIND = ("rank", "behind", "need")


def _beside_free_slots(trace: Trace) -> pl.LazyFrame:
    """How long requests waited for a place in batches that the engine keeps narrow."""
    size = num_slots(trace) or 0
    num_free = size - pl.col("num_running").cast(pl.Int64)
    has_free = (num_free > 0) & pl.col("kv_blocks_total").is_null()
    steps = own_times(formed(trace)).filter(has_free).with_columns(num_free=num_free)
    blocked = covered(waits(trace), merged(steps), "blocked_ns").collect().lazy()
    return (
        _with_free_slots(blocked, steps)
        .group_by(REQUEST)
        .agg(
            pl.col("step").min(),
            ts_ns=pl.col("from_ns").min(),
            end_ns=pl.col("to_ns").max(),
            room=pl.col("free_slot_ns").sum() / pl.col("blocked_ns").sum(),
            blocked_ns=pl.col("blocked_ns").sum(),
            need=pl.lit(size, pl.Int64),
        )
        .with_columns(
            pl.lit(None, pl.String).alias("behind"),
            pl.lit(None, pl.String).alias("short_of"),
            pl.lit(None, pl.Int64).alias("head_need"),
            way=pl.lit("slots"),
        )
        .select(_COLUMNS)
    )


def _is_alone(trace: Trace) -> bool:
    """Tell whether the engine declares that it runs one request at a time."""
    return max_num_seqs(trace) == 1 and num_slots(trace) in {None, 1}


def _one_by_one(trace: Trace) -> pl.LazyFrame:
    """How long requests waited for the only slot while another one had it and memory was free."""
    has_memory = (pl.col("kv_blocks_free") >= 0.5 * pl.col("kv_blocks_total")).fill_null(value=True)
    is_taken = (pl.col("num_running") == 1) & has_memory & pl.lit(_is_alone(trace))
    steps = own_times(formed(trace)).filter(is_taken)
    return (
        covered(waits(trace), merged(steps), "blocked_ns")
        .group_by(REQUEST)
        .agg(
            pl.col("step").min(),
            ts_ns=pl.col("from_ns").min(),
            end_ns=pl.col("to_ns").max(),
            blocked_ns=pl.col("blocked_ns").sum(),
        )
        .with_columns(
            pl.lit(None, pl.String).alias("behind"),
            pl.lit(None, pl.String).alias("short_of"),
            pl.lit(None, pl.Int64).alias("head_need"),
            way=pl.lit("alone"),
            need=pl.lit(1, pl.Int64),
            room=pl.lit(0.0),
        )
        .select(_COLUMNS)
    )


def _with_free_slots(waited: pl.LazyFrame, steps: pl.LazyFrame) -> pl.LazyFrame:
    """Add free_slot_ns: how many slots were free in each wait, times for how long they were."""
    free = (pl.col("to_ns") - pl.col("from_ns")).cast(pl.Float64) * pl.col("num_free")
    upto = (
        steps.filter(pl.col("from_ns") < pl.col("to_ns"))
        .sort("rank", "from_ns")
        .select(
            "rank", "num_free", since_ns="from_ns", until_ns="to_ns",
            before=free.cum_sum().over("rank") - free,
        )
        .sort("since_ns")
    )  # fmt: skip
    for moment in ("from_ns", "to_ns"):
        lasted = pl.min_horizontal(moment, "until_ns") - pl.col("since_ns")
        waited = (
            waited.sort(moment)
            .join_asof(upto, left_on=moment, right_on="since_ns", by="rank", check_sortedness=False)
            .with_columns((pl.col("before") + lasted * pl.col("num_free")).alias(f"free_{moment}"))
            .drop("num_free", "until_ns", "before", "since_ns", strict=False)
        )
    then, at_first = (pl.col(f"free_{moment}").fill_null(0.0) for moment in ("to_ns", "from_ns"))
    return waited.with_columns(free_slot_ns=then - at_first)
