"""rows-contradict: rows of the recording say what cannot both be so.

## What it finds
Rows of a recording of which no row is missing:

- a request is in a batch that was formed at least two steps after its end;
- a token of a request is missing among its outputs, of which later ones are there;
- more tokens of a request are computed in a batch than its batches before have computed, although
  it was not admitted, resumed or preempted in between;
- a batch has rows, and there is no row of its step;
- more KV blocks are free than there are.

## Why it hurts
Either the engine did what it must not do, such as running a request that it had ended, or the
recording is wrong. In both cases other findings, and all figures about these rows, are in doubt.

## Example
    2-99e6c015 finished in step 63 and is in the batch of step 71

## How to fix
Where the recording was edited or merged, record again. Otherwise see why the engine schedules what
it has released, or report it as a bug of the recorder, with the recording.

## References
No public report: found by editing recordings of vLLM and looking for what notices it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from stepscope.analyzers.findings.finding import Finding, Severity
from stepscope.analyzers.findings.rule import each, finding
from stepscope.analyzers.views.batches import when_formed
from stepscope.analyzers.views.requests import ENDS, REQUEST, events
from stepscope.ingest.trace import Trace

FIX = (
    "record again if the recording was edited or merged; else see why the engine schedules what it "
    "has released, or report the recording as a bug"
)
MOVES = ("arrive", "admit", "resume", "preempt", "defer", "ready")
STEPS_AFTER = 2
"""An engine that schedules ahead may have a request in one batch more than it needs."""
COLUMNS = ("rank", "request", "step", "ts_ns", "says")


@dataclass(frozen=True, slots=True)
class RowsContradict:
    """Rows of a recording contradict each other."""

    code: ClassVar[str] = "TRC007"
    name: ClassVar[str] = "rows-contradict"
    severity: ClassVar[Severity] = Severity.WARNING
    needs: ClassVar[tuple[str, ...]] = ()

    limit: int = 50

    def applies(self, trace: Trace) -> bool:
        """Tell whether steps or batches were recorded, and no row of theirs is missing."""
        return trace.manifest.is_recording and any(
            trace.has(table) and trace.manifest.is_whole(table)
            for table in ("steps", "batch_rows", "outputs")
        )

    def check(self, trace: Trace) -> list[Finding]:
        """One finding per contradiction, in order of time."""
        found = []
        whole = trace.manifest.is_whole
        if whole("batch_rows", "lifecycle", "steps"):
            found += [_after_the_end(trace), _computed_jumps(trace)]
        if whole("batch_rows", "steps"):
            found.append(_without_a_step(trace))
        if whole("outputs"):
            found.append(_missing_tokens(trace))
        if trace.has("steps"):
            found.append(_too_many_free(trace))
        if not found:
            return []
        rows = pl.concat(found).sort("ts_ns", "rank", "says").collect()
        return each(self, rows, self._finding, FIX, self.limit)

    def _finding(self, row: Mapping[str, Any]) -> Finding:
        return finding(self, row["says"], FIX, at=row)


def _batches(trace: Trace) -> pl.LazyFrame:
    """Batch rows of requests with when their step was formed, and its place among the steps."""
    formed = when_formed(trace).select("rank", "step", "formed_ns")
    placed = formed.sort("rank", "formed_ns", "step").with_columns(
        place=pl.int_range(pl.len()).over("rank")
    )
    return trace.batch_rows.filter(pl.col("request").is_not_null()).join(
        placed, on=["rank", "step"]
    )


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
    batches = _batches(trace)
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
                "{} had its end ({}) before step {} was formed, and is in its batch",
                "request", "event", "step",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _computed_jumps(trace: Trace) -> pl.LazyFrame:
    batches = _batches(trace).filter(
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
            "{} has {} tokens computed in step {}, and its batches before come to {}",
            "request", "num_computed", "step", "reached",
        ),
    ).select(COLUMNS)  # fmt: skip


def _without_a_step(trace: Trace) -> pl.LazyFrame:
    steps = trace.steps.select("rank", "step").unique()
    return (
        trace.batch_rows.filter(pl.col("step").is_not_null())
        .join(steps, on=["rank", "step"], how="anti")
        .group_by("rank", "step")
        .agg(pl.col("ts_ns").min(), num=pl.len())
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format("the batch of step {} has {} rows, and step {} has none", "step", "num",
                           "step"),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _missing_tokens(trace: Trace) -> pl.LazyFrame:
    """A request whose positions have a gap; who was there before the recording has later ones."""
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
                "token {} of {} is missing, and token {} is there",
                pl.col("before") + 1, "request", "position",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _too_many_free(trace: Trace) -> pl.LazyFrame:
    return (
        trace.steps.filter(pl.col("kv_blocks_free") > pl.col("kv_blocks_total"))
        .group_by("rank")
        .agg(
            pl.col("step", "ts_ns", "kv_blocks_free", "kv_blocks_total").sort_by("ts_ns").first(),
            num=pl.len(),
        )
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "{} KV blocks are free of {} in step {} ({} steps in all)",
                "kv_blocks_free", "kv_blocks_total", "step", "num",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip
