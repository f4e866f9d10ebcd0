"""Where a task graph stood when it made no more progress: what each task that is left waits for."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.rules.cor.occupancy import holds
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

TASK = ("rank", "task")
STEP = ("rank", "step")

# What a task that is left waits for; the first that any task of a step is in is the step's.
STATES = (
    "a part of a MIX never started",
    "a block never ended",
    "a completion was lost",
    "a release was lost",
    "ready and not dispatched",
    "not submitted",
    "waits for others that wait",
)
# A ready task is dispatched within a pass of a scheduler thread, which takes less than this.
PASS_NS = 100_000
PART_MISSING, NEVER_ENDED, COMPLETION, RELEASE, READY, UNSUBMITTED, WAITS = STATES


def pending_tasks(trace: Trace) -> pl.LazyFrame:
    """Tasks that were left: rank, step, task, ts_ns, state, and the core and group they hold.

    Also last_ns, when their step last made progress: a block was dispatched, began or ended, or a
    task became ready or retired.
    """
    left = trace.tasks.filter(pl.col("outcome") == "pending")
    steps, tasks = left.select(STEP).unique(), left.select(TASK).unique()
    # Where nothing is left, nothing is looked at: what is grouped is only what concerns these.
    spans = holds(trace)
    of_steps = spans.join(steps, on=STEP, how="semi", nulls_equal=True)
    known = (
        left.group_by(TASK)
        .agg(pl.col("step", "ts_ns", "ready_ns", "retired_ns", "core_mask", "num_blocks").max())
        .join(_on_cores(spans.join(tasks, on=TASK, how="semi")), on=TASK, how="left")
        .join(_waits(trace, tasks), on=TASK, how="left")
        .join(_last_progress(of_steps, trace), on=STEP, how="left", nulls_equal=True)
        .join(_given_up(trace), on=STEP, how="left", nulls_equal=True)
    )
    knows_parts = trace.manifest.tables.get("core_spans") != "partial"
    state = _state(knows_edges=trace.has("task_edges"), knows_parts=knows_parts)
    return _cut_short(known.with_columns(state=state)).drop("given_up_ns")


def _given_up(trace: Trace) -> pl.LazyFrame:
    """When each step ended: no progress was possible then, or none was waited for any longer."""
    ended = pl.col("ts_ns").clip(-FAR_NS, FAR_NS) + pl.col("dur_ns").clip(0, FAR_NS)
    return trace.steps.group_by(STEP).agg(given_up_ns=ended.max())


def _cut_short(known: pl.LazyFrame) -> pl.LazyFrame:
    """Do not take a task for left that was ready for less than a pass when its step was given up.

    A ring that can never move again is seen at once: what stands still then is the submission.
    """
    ready_ns = pl.max_horizontal("ready_ns", "last_ns")
    is_late = (pl.col("given_up_ns") - ready_ns < PASS_NS).fill_null(value=False)
    is_full = (pl.col("state") == UNSUBMITTED).any().over(STEP)
    state = pl.when((pl.col("state") == READY) & is_late & is_full).then(
        pl.lit(WAITS, pl.Enum(STATES))
    )
    return known.with_columns(state=state.otherwise("state"))


def _on_cores(spans: pl.LazyFrame) -> pl.LazyFrame:
    """What the cores saw of each task: blocks, parts, and a part that never ended."""
    never = pl.col("end_ns") >= FAR_NS
    seen = spans.group_by(TASK).agg(
        num_started=pl.col("block").n_unique().cast(pl.Int64),
        num_parts=pl.len().cast(pl.Int64),
        num_stuck=never.sum().cast(pl.Int64),
    )
    stuck = (
        spans.filter(never).sort("ts_ns", "core").unique(TASK, keep="first", maintain_order=True)
    )
    return seen.join(stuck.select(*TASK, "core", "group", "block"), on=TASK, how="left")


def _waits(trace: Trace, left: pl.LazyFrame) -> pl.LazyFrame:
    """Of how many tasks that are left each of them waits."""
    before = left.select("rank", from_task="task")
    return (
        trace.task_edges.select("rank", "from_task", task="to_task")
        .join(left, on=TASK, how="semi")
        .join(before, on=["rank", "from_task"], how="semi")
        .unique()
        .group_by(TASK)
        .agg(num_left_before=pl.len().cast(pl.Int64))
    )


def _last_progress(spans: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    ended = pl.when(pl.col("end_ns") < FAR_NS).then(pl.col("end_ns"))
    moments = [
        spans.select(*STEP, last_ns=pl.max_horizontal("dispatch_ns", "ts_ns", ended)),
        trace.tasks.select(
            *STEP,
            last_ns=pl.max_horizontal("ready_ns", "retired_ns").clip(-FAR_NS, FAR_NS),
        ),
    ]
    return pl.concat(moments).group_by(STEP).agg(pl.col("last_ns").max())


def _state(*, knows_edges: bool, knows_parts: bool) -> pl.Expr:
    """Each task's state; a part is missing only where all that began are known to be listed."""
    parts = pl.col("core_mask").bitwise_count_ones().cast(pl.Int64)
    num_blocks = pl.col("num_blocks").cast(pl.Int64)
    has_all = pl.col("num_parts") >= num_blocks * parts
    in_part = (parts > 1) & (pl.col("num_parts") < pl.col("num_started") * parts) & knows_parts
    is_ready = pl.col("ready_ns").is_not_null() | pl.col("num_started").is_not_null()
    # A task without a time was never submitted; where nothing went on, one with a time was. One of
    # the moment at which its step was given up had not been submitted by then.
    by_then = (pl.col("ts_ns") <= pl.col("last_ns")).fill_null(pl.col("ts_ns").is_not_null())
    in_time = (pl.col("ts_ns") < pl.col("given_up_ns")).fill_null(value=True)
    is_submitted = is_ready | (by_then & in_time)
    states = (
        (in_part, PART_MISSING),
        (pl.col("num_stuck") > 0, NEVER_ENDED),
        (has_all, COMPLETION),
        (is_ready, READY),
        (is_submitted.not_(), UNSUBMITTED),
        (pl.col("num_left_before").fill_null(0 if knows_edges else 1) == 0, RELEASE),
    )
    found = pl.lit(WAITS)
    for condition, state in reversed(states):
        found = pl.when(condition).then(pl.lit(state)).otherwise(found)
    return found.cast(pl.Enum(STATES))
