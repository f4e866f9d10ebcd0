"""rows-contradict: rows of the recording contradict each other.

## What it finds
In a recording without missing rows:

- a request is in a batch that was formed at least two steps after its end;
- an output token of a request is missing, and later ones are there; or it is there twice;
- a request that arrived and finished has fewer outputs than it generated tokens, or more than the
  engine may sample ahead, and most other requests have as many;
- a batch row counts more tokens of a request as already computed than its earlier batches computed,
  although it was not admitted, resumed or preempted in between;
- a request has fewer tokens computed than before, and neither a preemption, a draft nor the border
  of a block explains it (KVB010 reports 32 tokens and more);
- a request had its first token before it arrived, finished twice, or is in batches and was never
  admitted, as most others were;
- a count or a duration of a step is less than 0, a step is there twice, or no request runs in a
  step whose batch decodes some that continue;
- a batch has rows but its step has none, or the batch and its step differ in their number of
  tokens;
- the batch of a step has another number of requests than the step says, unlike other steps;
- more KV blocks are free or owned than exist, or a few steps say another number of KV blocks than
  all others;
- a request is in batches after a preemption and was not resumed, as others were;
- a request ended at the last moment of the recording with a KV block or slot that it did not
  release, and others released theirs by their end (KVB002 reports those that ended before);
- a request never arrived, and others did: the engine ran nothing when the recording began, and
  others were admitted before it;
- a request releases a KV block or slot and continues without it: it was not preempted, did not end,
  and owns too few blocks for its next batch; or it releases one that it does not own;
- a task ran no block on any core and was not skipped, but tasks that depend on it ran;
- a task was skipped and has blocks on cores, or has blocks and no row;
- a part of a MIX block never started, but all its other parts ended.

An engine with a sliding window releases the oldest block of a running request again and again: if
that happens more than twice, it is not a contradiction. Missing blocks on cores are also looked for
in the runtime's swimlanes, everything else only in recordings.

In any recording, it is also a finding if rows lack a value that the recorder writes in every row.

## Why it hurts
Either the engine did what it must not do, such as running a request that it had ended, or the
recording is wrong. In both cases other findings, and all figures about these rows, are in doubt.

## Example
    2-99e6c015 ended (finish) before step 71 was formed, but is in its batch

    req-04 released KV block 17 and runs in step 31 without it, but was not preempted

## How to fix
Where the recording was edited or merged, record again. Otherwise see why the engine schedules what
it has released, or report it as a bug of the recorder, with the recording.

## References
No public report: found by editing recordings of vLLM and looking for what notices it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import polars as pl

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.rules.trc.contradictions import (
    COLUMNS,
    STEPS_AFTER,
    of_batches,
    of_outputs,
    of_requests,
    of_steps,
    of_tasks,
    part_not_started,
    without_a_block,
)
from stepscope.analyzers.rules.trc.missing_rows import (
    more_owned_than_there_are,
    never_arrived,
    never_released,
    never_resumed,
    other_requests,
    other_total,
    too_many_free,
)
from stepscope.analyzers.views.batches import placed_batches, when_formed
from stepscope.analyzers.views.declared import block_size, page_size
from stepscope.analyzers.views.partial import missing_values
from stepscope.analyzers.views.requests import ENDS, REQUEST, events
from stepscope.ingest.trace import Trace

FIX = (
    "record again if the recording was edited or merged; else see why the engine schedules what it "
    "has released, or report the recording as a bug"
)
MOVES = ("arrive", "admit", "resume", "preempt", "defer", "ready")
OF_NO_WINDOW = 2
"""Releases of the oldest block of a running request; more of them are from a sliding window."""
OF_A_REQUEST = 3
"""Releases of a request that are checked: one of them is enough for a finding."""
LEAST_RESET = 32
"""Tokens that a request goes back to have been reset, as KVB010 reports it."""
LEAST_BLOCK = 8
"""Tokens of the smallest KV block; the sizes of larger ones are multiples of it."""
Way = Literal["backward", "forward"]


@dataclass(frozen=True, slots=True)
class RowsContradict:
    """Rows of a recording contradict each other."""

    code: ClassVar[str] = "TRC007"
    name: ClassVar[str] = "rows-contradict"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ()

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether steps, batches or blocks were recorded, and no row of theirs is missing."""
        if missing_values(trace) or _has_all_blocks(trace):
            return True
        return trace.manifest.is_recording and any(
            trace.has(table) and trace.manifest.is_whole(table)
            for table in ("steps", "batch_rows", "outputs")
        )

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per contradiction, in order of time."""
        found = [without_a_block(trace), part_not_started(trace)] if _has_all_blocks(trace) else []
        if trace.manifest.is_recording:
            found += _of_requests(trace)
        missing = [finding(self, line, FIX) for line in missing_values(trace)]
        if not found:
            return missing
        end_ns = pl.col("ts_ns").alias("end_ns")
        rows = pl.concat(found).with_columns(end_ns).sort("ts_ns", "rank", "says").collect()
        return [*missing, *each(self, rows, self._finding, FIX, self.limit)]

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        return finding(self, row["says"], FIX, at={**row, "end_ns": None})


def _has_all_blocks(trace: Trace) -> bool:
    """Tell whether no task and no block on a core can be missing; swimlanes count as whole."""
    states = [trace.manifest.tables.get(table) for table in ("tasks", "core_spans")]
    return trace.manifest.closed and all(state in {"complete", "inferred"} for state in states)


def _of_requests(trace: Trace) -> list[pl.LazyFrame]:
    """Contradictions about steps and requests, as far as their tables are whole."""
    whole = trace.manifest.is_whole
    found = _of_blocks(trace)
    if whole("batch_rows", "lifecycle", "steps"):
        found += [_after_the_end(trace), _computed_jumps(trace), _computed_back(trace)]
        found += [*of_batches(trace), never_arrived(trace), never_resumed(trace)]
    if whole("batch_rows", "steps"):
        found += [
            _without_a_step(trace),
            _other_tokens(trace),
            _without_ended(trace, other_requests(trace)),
        ]
    if whole("lifecycle"):
        found += of_requests(trace)
    if whole("tasks", "core_spans"):
        found += of_tasks(trace)
    if whole("outputs"):
        found.append(_missing_tokens(trace))
    if whole("outputs", "lifecycle"):
        found += of_outputs(trace)
    if trace.has("steps"):
        found += [too_many_free(trace), other_total(trace), *of_steps(trace)]
    return found


def _of_blocks(trace: Trace) -> list[pl.LazyFrame]:
    """Contradictions about KV blocks and slots, as far as their tables are whole."""
    whole = trace.manifest.is_whole
    found = []
    if whole("batch_rows", "lifecycle", "steps", "allocations"):
        found += [_released_and_runs_on(trace), _released_twice(trace)]
    if whole("lifecycle", "allocations"):
        found.append(never_released(trace))
    if whole("steps", "allocations"):
        found.append(more_owned_than_there_are(trace))
    return found


def _after_the_end(trace: Trace) -> pl.LazyFrame:
    known = events(trace)
    ended = (
        known.filter(pl.col("event").is_in(ENDS))
        .group_by(REQUEST)
        .agg(ended_ns=pl.col("ts_ns").max(), event=pl.col("event").last())
    )
    again = known.filter(pl.col("event").is_in(MOVES)).group_by(REQUEST).agg(
        moved_ns=pl.col("ts_ns").max()
    )  # fmt: skip
    sure = ended.join(again, on=REQUEST, how="left").filter(
        pl.col("moved_ns").is_null() | (pl.col("moved_ns") <= pl.col("ended_ns"))
    )
    batches = placed_batches(trace)
    formed = when_formed(trace).select("rank", "formed_ns").sort("formed_ns")
    before = (
        formed.with_columns(num_before=pl.int_range(1, pl.len() + 1).over("rank"))
        .sort("formed_ns")
        .rename({"formed_ns": "at_ns"})
    )
    last = sure.sort("ended_ns").join_asof(
        before, left_on="ended_ns", right_on="at_ns", by="rank", check_sortedness=False
    )
    return (
        batches.join(last, on=REQUEST)
        .filter(
            pl.col("formed_ns") > pl.col("ended_ns"),
            pl.col("place") + 1 >= pl.col("num_before").fill_null(0) + STEPS_AFTER,
        )
        .group_by(REQUEST)
        .agg(
            pl.col("step").first(), pl.col("formed_ns").min().alias("ts_ns"),
            pl.col("event").first(), num=pl.col("step").n_unique(),
        )
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format(
                "{} ended ({}) before step {} was formed, but is in its batch",
                "request", "event", "step",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _computed_jumps(trace: Trace) -> pl.LazyFrame:
    batches = placed_batches(trace).filter(
        pl.col("num_computed").is_not_null(), pl.col("num_tokens").is_not_null()
    )
    moves = (
        events(trace)
        .filter(pl.col("event").is_in(MOVES))
        .select(*REQUEST, moved_ns="ts_ns")
        .sort("moved_ns")
    )
    order = pl.col("num_computed") + pl.col("num_tokens")
    following = (
        batches.sort(*REQUEST, "place")
        .with_columns(
            reached=order.shift(1).over(REQUEST),
            before_ns=pl.col("formed_ns").shift(1).over(REQUEST),
        )
        .filter(pl.col("num_computed") > pl.col("reached"))
        .sort("formed_ns")
        .join_asof(
            moves, left_on="formed_ns", right_on="moved_ns", by=list(REQUEST),
            check_sortedness=False,
        )
        .filter(pl.col("moved_ns").is_null() | (pl.col("moved_ns") < pl.col("before_ns")))
    )  # fmt: skip
    return following.select(
        *REQUEST, "step", ts_ns="formed_ns",
        says=pl.format(
            "{} has {} tokens computed in step {}, but its earlier batches come to {}",
            "request", "num_computed", "step", "reached",
        ),
    ).select(COLUMNS)  # fmt: skip


def _computed_back(trace: Trace) -> pl.LazyFrame:
    """Steps back that are too short for a reset, and that no draft and no border of blocks explain.

    Without the size of a block it is a multiple of LEAST_BLOCK. An engine may compute the last
    token again.
    """
    sizes = [size for size in (block_size(trace), page_size(trace)) if size] or [LEAST_BLOCK]
    computed = pl.col("num_computed").cast(pl.Int64)
    may_draft = (pl.col("num_draft").fill_null(0) > 0) | (
        (pl.col("phase") == "decode") & (pl.col("num_tokens") > 1)
    )
    moves = (
        events(trace)
        .filter(pl.col("event").is_in([*MOVES, *ENDS]))
        .select(*REQUEST, moved_ns="ts_ns")
        .sort("moved_ns")
    )
    back = pl.col("reached") - computed
    is_border = pl.any_horizontal(
        pl.lit(value=not sizes), *(computed % size == 0 for size in sizes)
    )
    return (
        placed_batches(trace)
        .filter(computed.is_not_null(), pl.col("num_tokens").is_not_null())
        .sort(*REQUEST, "place")
        .with_columns(
            reached=(computed + pl.col("num_tokens")).shift(1).over(REQUEST),
            before_ns=pl.min_horizontal("ts_ns", "formed_ns").shift(1).over(REQUEST),
            may_draft=may_draft.any().over(REQUEST),
        )
        .filter(back > 1, back < LEAST_RESET, ~pl.col("may_draft"), ~is_border)
        .sort("ts_ns")
        .join_asof(
            moves, left_on="ts_ns", right_on="moved_ns", by=list(REQUEST), check_sortedness=False
        )
        .filter(pl.col("moved_ns").is_null() | (pl.col("moved_ns") < pl.col("before_ns")))
        .select(
            *REQUEST, "step", ts_ns="formed_ns",
            says=pl.format(
                "{} has {} tokens computed in step {}, had {} before, and was not preempted",
                "request", "num_computed", "step", "reached",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _without_a_step(trace: Trace) -> pl.LazyFrame:
    steps = trace.steps.select("rank", "step").unique()
    return (
        trace.batch_rows.filter(pl.col("step").is_not_null())
        .join(steps, on=["rank", "step"], how="anti")
        .group_by("rank", "step")
        .agg(pl.col("ts_ns").min(), num=pl.len())
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "the batch of step {} has {} rows, but step {} itself has none",
                "step", "num", "step",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _other_tokens(trace: Trace) -> pl.LazyFrame:
    """Steps whose batch has another number of tokens, without those that `_after_the_end` finds."""
    in_rows = trace.batch_rows.group_by("rank", "step").agg(in_rows=pl.col("num_tokens").sum())
    said = pl.col("num_prefill_tokens") + pl.col("num_decode_tokens")
    found = (
        trace.steps.filter(pl.col("kind") != "dummy")
        .with_columns(said=said)
        .join(in_rows, on=["rank", "step"])
        .filter(pl.col("in_rows") != pl.col("said"))
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "step {} says that it computed {} tokens, but its batch has {}", "step", "said",
                "in_rows",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip
    return _without_ended(trace, found)


def _without_ended(trace: Trace, found: pl.LazyFrame) -> pl.LazyFrame:
    if not trace.manifest.is_whole("lifecycle"):
        return found
    return found.join(_after_the_end(trace), on=["rank", "step"], how="anti")


def _changes(trace: Trace) -> pl.LazyFrame:
    """Claims and releases of arrived requests, with how often they own the block from then on."""
    arrived = events(trace).filter(pl.col("event") == "arrive").select(*REQUEST).unique()
    moved = trace.allocations.filter(pl.col("op") == "move").select("rank", request="owner")
    change = pl.col("op").replace_strict(
        {"claim": 1, "share": 1, "release": -1}, default=0, return_dtype=pl.Int64
    )
    return (
        trace.allocations.filter(pl.col("ts_ns").is_not_null(), pl.col("id").is_not_null())
        .with_columns(request="owner", change=change, place=pl.int_range(pl.len()))
        .filter(pl.col("change") != 0)
        .join(arrived, on=REQUEST, how="semi")
        .join(moved, on=REQUEST, how="anti")
        .select(*REQUEST, "step", "ts_ns", "resource", "id", "op", "change", "place")
        .sort("ts_ns", "place")
        .with_columns(
            times_owned=pl.col("change").cum_sum().over(*REQUEST, "resource", "id"),
            num_owned=pl.col("change").cum_sum().over(*REQUEST, "resource"),
            _turn=pl.col("change").cum_count().over(*REQUEST, "resource", "change"),
        )
        # The n-th claim is the oldest that is left where n - 1 were released before it.
        .with_columns(
            is_oldest=(pl.col("change") < 0)
            & (
                pl.col("_turn").filter(pl.col("change") > 0).last().over(*REQUEST, "resource", "id")
                == pl.col("_turn")
            )
        )
        .drop("_turn")
    )


def _released_twice(trace: Trace) -> pl.LazyFrame:
    return (
        _changes(trace)
        .filter(pl.col("times_owned") < 0)
        .group_by(*REQUEST, "resource")
        .agg(pl.col("step", "ts_ns", "id").first())
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format("{} released {} {}, which it did not own", "request", _RESOURCE, "id"),
        )
        .select(COLUMNS)
    )  # fmt: skip


_RESOURCE = pl.col("resource").replace({"kv-block": "KV block"})


def _released_and_runs_on(trace: Trace) -> pl.LazyFrame:
    """Releases of admitted requests that run in later batches with too few blocks."""
    formed = pl.col("formed_ns")
    batches = placed_batches(trace).sort(*REQUEST, "formed_ns", "step").select(
        *REQUEST, "formed_ns", batch="step", following_ns=formed.shift(-1).over(REQUEST),
        reached=pl.col("num_computed").cast(pl.Int64) + pl.col("num_tokens"),
    )  # fmt: skip
    outs = events(trace).filter(pl.col("event").is_in([*ENDS, *MOVES])).select(*REQUEST, "ts_ns")
    changes = _changes(trace)
    claims = changes.filter(pl.col("op") != "release").select(*REQUEST, "resource", "ts_ns")
    moment = pl.col("ts_ns")
    released = changes.filter(pl.col("op") == "release", pl.col("times_owned") == 0)
    nearest: tuple[tuple[str, pl.LazyFrame, Sequence[str], Way], ...] = (
        ("before_ns", batches.select(*REQUEST, ts_ns="formed_ns"), REQUEST, "backward"),
        ("next_ns", batches.select(*REQUEST, ts_ns=formed - 1), REQUEST, "forward"),
        ("out_ns", outs, REQUEST, "forward"),
        ("claim_ns", claims, (*REQUEST, "resource"), "forward"),
        ("last_out_ns", outs, REQUEST, "backward"),
    )
    for name, times, by, way in nearest:
        others = times.with_columns(moment.alias(name)).sort("ts_ns")
        released = released.sort("ts_ns").join_asof(
            others, on="ts_ns", by=list(by), strategy=way, check_sortedness=False
        )
    is_out = (pl.col("out_ns") <= pl.col("next_ns") + 1) | (
        pl.col("last_out_ns") >= pl.col("before_ns")
    )
    ran_on = released.filter(
        pl.col("next_ns").is_not_null(), pl.col("before_ns").is_not_null(),
        ~is_out.fill_null(value=False),
    ).filter(~pl.col("is_oldest") | (pl.col("is_oldest").sum() <= OF_NO_WINDOW))  # fmt: skip
    size = block_size(trace)
    too_few = pl.col("num_owned") * size < pl.col("reached") if size else pl.lit(value=True)
    # Blocks for a batch may be claimed after it began to form: of the last one before a claim it
    # is not known how many it had.
    is_before = (pl.col("formed_ns") > moment) & (
        pl.col("claim_ns").is_null() | (pl.col("following_ns") <= pl.col("claim_ns"))
    )
    is_in = pl.col("out_ns").is_null() | (pl.col("formed_ns") < pl.col("out_ns"))
    return (
        ran_on.sort("ts_ns", "place")
        .group_by(*REQUEST, "resource", maintain_order=True)
        .head(OF_A_REQUEST)
        .join(batches, on=REQUEST)
        .filter(is_before, is_in, (pl.col("resource") == "slot") | too_few)
        .sort("ts_ns", "place", "formed_ns")
        .group_by(*REQUEST, "resource")
        .agg(pl.col("step", "ts_ns", "id", "batch").first())
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format(
                "{} released {} {} and runs in step {} without it, but was not preempted",
                "request", _RESOURCE, "id", "batch",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _missing_tokens(trace: Trace) -> pl.LazyFrame:
    """Requests with a gap in their positions; the first one may be above 0 (earlier requests)."""
    return (
        trace.outputs.filter(pl.col("request").is_not_null(), pl.col("position").is_not_null())
        .select(*REQUEST, "step", "ts_ns", "position")
        .unique([*REQUEST, "position"])
        .sort(*REQUEST, "position")
        .with_columns(before=pl.col("position").shift(1).over(REQUEST))
        .filter(pl.col("position") > pl.col("before") + 1)
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format(
                "token {} of {} is missing, but token {} is there",
                pl.col("before") + 1, "request", "position",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip
