"""What outputs say of the ends of requests, and what no row can say: part of rows-contradict."""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.views.requests import ENDS, REQUEST, events
from stepscope.ingest.trace import Trace

COLUMNS = ("rank", "request", "step", "ts_ns", "says")
BY_ONE = 10
"""How many requests must be as the engine has them for one that is not to be a contradiction."""
BY_SOME = 2
"""As BY_ONE, where a request that is not lacks a part only, and no engine leaves out a part."""
STEPS_AFTER = 2
"""An engine that schedules ahead may have a request in one batch more than it needs."""
AHEAD = 2
"""Tokens that an engine which schedules ahead may sample after the end of a request."""
STOP_STRING = 16
"""Tokens of a stop string, which an engine may cut off after it has sampled them."""

KIND_BITS = {"AIC": 1, "AIV0": 2, "AIV1": 4}
"""Bits of a task's `core_mask`, by kind of core."""


def of_outputs(trace: Trace) -> list[pl.LazyFrame]:
    """Outputs that contradict how many tokens were generated, of requests that arrived."""
    return [_other_outputs(trace), _tokens_twice(trace)]


def _drafted(trace: Trace) -> pl.LazyFrame:
    """Requests with a draft, or rows that may have one, with the most tokens of one of them."""
    is_decode = (pl.col("phase") == "decode") & (pl.col("num_tokens") > 1)
    return (
        trace.batch_rows.filter((pl.col("num_draft") > 0) | is_decode)
        .group_by(REQUEST)
        .agg(num_draft=pl.max_horizontal("num_draft", "num_tokens").max())
    )


def _arrived_once(trace: Trace) -> pl.LazyFrame:
    return (
        events(trace)
        .filter(pl.col("event") == "arrive")
        .group_by(REQUEST)
        .agg(arrive_ns=pl.col("ts_ns").min(), num_arrivals=pl.len())
        .filter(pl.col("num_arrivals") == 1)
        .drop("num_arrivals")
    )


def _other_outputs(trace: Trace) -> pl.LazyFrame:
    """Requests that finished with fewer or more tokens than they have outputs, unlike others."""
    finished = (
        events(trace)
        .filter(pl.col("event").is_in(ENDS))
        .group_by(REQUEST)
        .agg(
            pl.col("step", "ts_ns", "event", "num_generated", "cause").first(), num_ends=pl.len()
        )
        .filter(
            pl.col("event") == "finish", pl.col("num_ends") == 1,
            pl.col("num_generated").is_not_null(),
        )
    )  # fmt: skip
    in_outputs = (
        trace.outputs.filter(pl.col("position").is_not_null())
        .group_by(REQUEST)
        .agg(num_outputs=pl.col("position").max() + 1)
    )
    is_capped = pl.col("cause").str.contains("length").fill_null(value=False)
    spare = (
        AHEAD + pl.col("num_draft").fill_null(0) + pl.when(is_capped).then(0).otherwise(STOP_STRING)
    )
    num, said = pl.col("num_outputs"), pl.col("num_generated")
    differs = (num < said) | (num > said + spare)
    num_agree = (num == said).sum().over("rank")
    num_without = (differs & (num == 0)).sum().over("rank")
    num_differ = differs.sum().over("rank")
    is_sure = (num_differ * BY_SOME <= num_agree) & (
        (num > 0) | (num_without * BY_ONE <= num_agree)
    )
    return (
        finished.join(_arrived_once(trace), on=REQUEST)
        .join(in_outputs, on=REQUEST, how="left")
        .join(_drafted(trace), on=REQUEST, how="left")
        .with_columns(num.fill_null(0))
        .filter(differs & is_sure)
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format(
                "{} finished with {} tokens generated, and has outputs of {}",
                "request", "num_generated", "num_outputs",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _tokens_twice(trace: Trace) -> pl.LazyFrame:
    """Positions that have two outputs: where most of a request have, it has several samples."""
    sampled = trace.outputs.filter(pl.col("position").is_not_null())
    replaced = sampled.filter("is_placeholder").select(*REQUEST, "position").unique()
    positions = (
        sampled.join(replaced, on=[*REQUEST, "position"], how="anti")
        .group_by(*REQUEST, "position")
        .agg(pl.col("step", "ts_ns").last(), num=pl.len())
    )
    is_twice = pl.col("num") > 1
    return (
        positions.join(_arrived_once(trace), on=REQUEST, how="semi")
        .join(_drafted(trace), on=REQUEST, how="anti")
        .filter((is_twice.sum() * BY_SOME <= pl.len()).over(REQUEST), is_twice)
        .sort("position")
        .group_by(REQUEST)
        .agg(pl.col("step", "ts_ns", "position", "num").first())
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format("token {} of {} has {} outputs", "position", "request", "num"),
        )
        .select(COLUMNS)
    )  # fmt: skip


COUNTS = (
    "num_prefill_reqs", "num_decode_reqs", "num_prefill_tokens", "num_decode_tokens", "num_waiting",
    "num_running", "kv_blocks_free", "kv_blocks_total", "dur_ns",
)  # fmt: skip
"""What a step counts or lasts, none of which can be less than 0."""


def of_steps(trace: Trace) -> list[pl.LazyFrame]:
    """Steps that say what no step can."""
    return [_less_than_none(trace), _steps_twice(trace)]


def of_requests(trace: Trace) -> list[pl.LazyFrame]:
    """Events of requests, of which no row is missing, in an order that they cannot have."""
    return [_token_before_arrival(trace), _finished_twice(trace)]


def of_batches(trace: Trace) -> list[pl.LazyFrame]:
    """Batches, of which no row is missing, of requests that cannot be in them."""
    return [_never_admitted(trace), _none_running(trace)]


def of_tasks(trace: Trace) -> list[pl.LazyFrame]:
    """Blocks on cores, of which no row is missing, of tasks that did not run or are not there."""
    return [_skipped_and_ran(trace), _without_a_task(trace)]


def _less_than_none(trace: Trace) -> pl.LazyFrame:
    counts = [
        trace.steps.filter(pl.col(name) < 0)
        .group_by("rank")
        .agg(
            pl.col("step", "ts_ns").sort_by("ts_ns").first(),
            value=pl.col(name).cast(pl.Int64).sort_by("ts_ns").first(), num=pl.len(),
        )
        .with_columns(name=pl.lit(name))
        for name in COUNTS
    ]  # fmt: skip
    return (
        pl.concat(counts)
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "{} is {} in step {}, and cannot be less than 0 (in {} of the steps)",
                "name", "value", "step", "num",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _steps_twice(trace: Trace) -> pl.LazyFrame:
    """Steps that are there twice at one time: a number alone comes again after a restart."""
    return (
        trace.steps.drop_nulls(["step", "ts_ns"])
        .group_by("rank", "step", "ts_ns", "pp_stage", "by_rank", "kind")
        .agg(num=pl.len())
        .filter(pl.col("num") > 1)
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format("step {} is there {} times", "step", "num"),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _token_before_arrival(trace: Trace) -> pl.LazyFrame:
    """An id that is used again may have both, but then it ended before its arrival as well."""
    is_end = pl.col("event").is_in(ENDS)
    is_first = pl.col("event") == "first-token"
    return (
        events(trace)
        .filter(is_end | is_first)
        .group_by(REQUEST)
        .agg(
            pl.col("step").filter(is_first).first(), ts_ns=pl.col("ts_ns").filter(is_first).min(),
            end_ns=pl.col("ts_ns").filter(is_end).min(), num_first=is_first.sum(),
        )
        .join(_arrived_once(trace), on=REQUEST)
        .filter(
            pl.col("num_first") == 1, pl.col("ts_ns") < pl.col("arrive_ns"),
            pl.col("end_ns") > pl.col("arrive_ns"),
        )
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format("{} had its first token before it arrived", "request"),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _finished_twice(trace: Trace) -> pl.LazyFrame:
    known = events(trace).sort("ts_ns")
    moves = known.filter(~pl.col("event").is_in([*ENDS, "first-token", "deliver", "receive"]))
    moves = moves.select(*REQUEST, moved_ns="ts_ns").sort("moved_ns")
    return (
        known.filter(pl.col("event") == "finish")
        .join_asof(
            moves, left_on="ts_ns", right_on="moved_ns", by=list(REQUEST), check_sortedness=False
        )
        .join(_arrived_once(trace), on=REQUEST, how="semi")
        .group_by(*REQUEST, "moved_ns")
        .agg(pl.col("step", "ts_ns").last(), before=pl.col("step").first(), num=pl.len())
        .filter(pl.col("num") > 1)
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format("{} finished {} times, and arrived once", "request", "num"),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _never_admitted(trace: Trace) -> pl.LazyFrame:
    """Requests that are in batches after they arrived and never left the queue, unlike others.

    One that was preempted while its KV was on its way was let in first when it was resumed.
    """
    let_in = (
        events(trace)
        .group_by(REQUEST)
        .agg(
            is_admit=(pl.col("event") == "admit").any(),
            is_out=(pl.col("event") == "preempt").any(),
            back_ns=pl.col("ts_ns").filter(pl.col("event") == "resume").min(),
        )
    )
    is_back = pl.col("back_ns").is_not_null()
    is_first = ~pl.col("is_out") | (pl.col("back_ns") <= pl.col("ts_ns"))
    is_admitted = (pl.col("is_admit") | (is_back & is_first)).fill_null(value=False)
    batches = (
        trace.batch_rows.filter(pl.col("ts_ns").is_not_null(), pl.col("num_tokens") > 0)
        .sort("ts_ns")
        .group_by(REQUEST)
        .agg(pl.col("step", "ts_ns").first())
    )
    return (
        batches.join(_arrived_once(trace), on=REQUEST)
        .filter(pl.col("ts_ns") > pl.col("arrive_ns"))
        .join(let_in, on=REQUEST, how="left")
        .filter(
            ((~is_admitted).sum() * BY_ONE <= is_admitted.sum()).over("rank"), ~is_admitted
        )
        .select(
            *REQUEST, "step", "ts_ns",
            says=pl.format(
                "{} is in the batch of step {}, and was never admitted", "request", "step"
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _none_running(trace: Trace) -> pl.LazyFrame:
    """Steps in which none runs, with a decode of a request that goes on, unlike other steps."""
    batches = trace.batch_rows.filter(pl.col("request").is_not_null(), pl.col("num_tokens") > 0)
    is_going_on = pl.col("step") < pl.col("step").max().over(REQUEST)
    decodes = (
        batches.filter((pl.col("phase") == "decode") & is_going_on)
        .group_by("rank", "step")
        .agg(num_going_on=pl.len())
    )
    differs = pl.col("num_running") == 0
    return (
        trace.steps.filter(pl.col("kind") != "dummy", pl.col("num_running").is_not_null())
        .join(decodes, on=["rank", "step"])
        .filter((differs.sum() * BY_ONE <= (~differs).sum()).over("rank"), differs)
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "no request runs in step {}, and {} of its batch are decoded further",
                "step", "num_going_on",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _skipped_and_ran(trace: Trace) -> pl.LazyFrame:
    task = ["rank", "task"]
    is_skipped = (pl.col("outcome") == "skipped").fill_null(value=False)
    skipped = (
        trace.tasks.filter(pl.col("task").is_not_null())
        .group_by(task)
        .agg(pl.col("step", "ts_ns", "name").first(), all_skipped=is_skipped.all())
        .filter("all_skipped")
    )
    ran = trace.core_spans.group_by(task).agg(num=pl.len())
    return (
        skipped.join(ran, on=task)
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "task {} was skipped, and has blocks on cores: {}", _named("name", "task"), "num"
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _without_a_task(trace: Trace) -> pl.LazyFrame:
    """Blocks of tasks between others that are there; earlier ones were there before the trace."""
    task = ["rank", "task"]
    known = trace.tasks.filter(pl.col("task").is_not_null())
    between = known.group_by("rank").agg(
        least=pl.col("task").min(), most=pl.col("task").max(), num_tasks=pl.col("task").n_unique()
    )
    return (
        trace.core_spans.filter(pl.col("task").is_not_null())
        .join(known.select(task).unique(), on=task, how="anti")
        .group_by(task)
        .agg(pl.col("step", "ts_ns").first(), num=pl.len())
        .join(between, on="rank")
        .filter(
            pl.col("task").is_between("least", "most"),
            pl.len().over("rank") * BY_ONE <= pl.col("num_tasks"),
        )
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format("task {} has no row, and has blocks on cores: {}", "task", "num"),
        )
        .select(COLUMNS)
    )  # fmt: skip


def _named(name: str, task: str) -> pl.Expr:
    """A task by name and number, or by number alone."""
    return pl.when(pl.col(name).is_null()).then(pl.col(task).cast(pl.String)).otherwise(
        pl.format("{} ({})", name, task)
    )  # fmt: skip


def without_a_block(trace: Trace) -> pl.LazyFrame:
    """Tasks that were to run and did not, although tasks that wait for them ran."""
    task = ["rank", "task"]
    ran = trace.core_spans.filter(pl.col("task").is_not_null()).select(task).unique()
    is_to_run = ~pl.col("outcome").is_in(["skipped", "dummy"]).fill_null(value=False)
    missing = (
        trace.tasks.filter(is_to_run, (pl.col("shape") != "DUMMY").fill_null(value=True))
        .join(ran, on=task, how="anti")
        .select("rank", "task", "step", "ts_ns", "name")
    )
    names = trace.tasks.select("rank", to_task="task", to_name="name")
    return (
        trace.task_edges.select("rank", "to_task", task="from_task")
        .unique()
        .join(missing, on=task)
        .join(ran.rename({"task": "to_task"}), on=["rank", "to_task"])
        .join(names, on=["rank", "to_task"], how="left")
        .sort("to_task")
        .group_by(*task, "step", "ts_ns", "name")
        .agg(pl.col("to_task", "to_name").first(), num=pl.len())
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "task {} has no block on any core, but {} of the tasks that depend on it ran, "
                "such as {}",
                _named("name", "task"), "num", _named("to_name", "to_task"),
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip


def part_not_started(trace: Trace) -> pl.LazyFrame:
    """Blocks of MIX tasks that have a part less than their task needs, and all others ended."""
    task = ["rank", "task"]
    needs = (
        trace.tasks.filter(pl.col("shape") == "MIX", pl.col("core_mask").is_not_null())
        .group_by(task)
        .agg(pl.col("core_mask").max(), pl.col("name").first())
    )
    parts = (
        trace.core_spans.filter(pl.col("task").is_not_null(), pl.col("core_kind").is_not_null())
        .group_by(*task, "block")
        .agg(
            pl.col("step").min(), pl.col("ts_ns").min(), kinds=pl.col("core_kind").unique(),
            is_over=pl.col("end_ns").is_not_null().all(),
        )
        .filter("is_over")
    )  # fmt: skip
    missing = [
        pl.when(pl.col("core_mask") // bit % 2 == 1, ~pl.col("kinds").list.contains(kind)).then(
            pl.lit(kind)
        )
        for kind, bit in KIND_BITS.items()
    ]
    return (
        parts.join(needs, on=task)
        .with_columns(
            missing=pl.concat_str(missing, separator=" and ", ignore_nulls=True),
            ran=pl.col("kinds").list.sort().list.join(" and "),
        )
        .filter(pl.col("missing") != "")
        .select(
            "rank", "step", "ts_ns", request=pl.lit(None, pl.String),
            says=pl.format(
                "block {} of MIX task {} ran on {} to its end, but its part on {} never started",
                "block", _named("name", "task"), "ran", "missing",
            ),
        )
        .select(COLUMNS)
    )  # fmt: skip
