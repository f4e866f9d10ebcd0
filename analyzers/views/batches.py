"""What each step's batch held, and who could have been in it and was not."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analyzers.views.known import any_row
from stepscope.analyzers.views.left_out import not_ready, num_holding
from stepscope.analyzers.views.once import once
from stepscope.analyzers.views.requests import ENDS, REQUEST, events
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

STEP = ("rank", "step")
LANE = ("rank", "pp_stage")
"""What runs one step after the other: a rank, or each stage of its pipeline."""
SAMPLED = ("SGLang Prefill batch lines", "SGLang Decode batch lines")
"""What steps are inferred from that has each prefill batch, and of many decode batches one."""


def formed(trace: Trace) -> pl.LazyFrame:
    """`steps` of which number and time are known, with times that can be added up.

    Adds end_ns (ts_ns where the duration is not known), num_tokens (null unless both counts are
    known) and num_reqs. When each was formed is told by `when_formed` alone.
    """
    known = pl.col("step").is_not_null() & pl.col("ts_ns").is_not_null()
    lasts = pl.col("dur_ns").clip(0, FAR_NS).fill_null(0)
    counts = pl.col("num_prefill_tokens", "num_decode_tokens", "token_budget", "reserved_tokens")
    return (
        trace.steps.filter(known)
        .drop("formed_ns")
        .with_columns(pl.col("ts_ns").clip(-FAR_NS, FAR_NS), counts.clip(-FAR_NS, FAR_NS))
        .with_columns(
            end_ns=pl.col("ts_ns") + lasts,
            num_tokens=pl.col("num_prefill_tokens") + pl.col("num_decode_tokens"),
            num_reqs=(
                pl.col("num_prefill_reqs").cast(pl.Int64) + pl.col("num_decode_reqs")
            ),
        )
    )  # fmt: skip


def has_every_step(trace: Trace) -> bool:
    """Tell whether steps that are next to each other in the trace followed each other."""
    return not any_row(trace.steps.filter(pl.col("inferred").is_in(SAMPLED)))


def own_times(steps: pl.LazyFrame, of: Sequence[str] = LANE) -> pl.LazyFrame:
    """Add from_ns and to_ns: when each step ran and none did of the same `of` that began before it.

    Steps of an engine that schedules ahead overlap; these times do not, and add up to the time in
    which any of them ran, which the sum of the durations is more than. A step that ran beside
    others only has none: from_ns is to_ns. Stages of a pipeline run beside each other, each on a
    device of its own: a stage's times are its own unless `of` is the rank alone, which has them
    all in one row of time. `steps` are `formed`.
    """
    before_ns = pl.col("end_ns").cum_max().shift(1).over(of)
    from_ns = pl.min_horizontal(pl.max_horizontal("ts_ns", before_ns), "end_ns")
    in_order = steps.sort("rank", "ts_ns", "step", "end_ns", "kind")
    return in_order.with_columns(from_ns=from_ns, to_ns=pl.col("end_ns"))


def when_formed(trace: Trace) -> pl.LazyFrame:
    """When each step's batch was formed: rank, step, formed_ns, in the order in which they were.

    As the step says; where it does not, as its rows do, as what was decided in it about requests
    does, or else when the step began. An engine that schedules ahead forms a batch while the one
    before it runs.
    """
    return once(trace, "when formed", lambda: _when_formed(trace))


def placed_batches(trace: Trace) -> pl.LazyFrame:
    """Batch rows of requests, with the time and the order in which their step was formed."""
    formed = when_formed(trace).select("rank", "step", "formed_ns")
    placed = formed.sort("rank", "formed_ns", "step").with_columns(
        place=pl.int_range(pl.len()).over("rank")
    )
    return trace.batch_rows.filter(pl.col("request").is_not_null()).join(
        placed, on=["rank", "step"]
    )


def _when_formed(trace: Trace) -> pl.LazyFrame:
    known = pl.col("step").is_not_null() & pl.col("ts_ns").is_not_null()
    about_requests = pl.col("subject_kind") == "request"
    told = {
        "rows_ns": trace.batch_rows.filter(known),
        "decided_ns": trace.decisions.filter(known, about_requests),
        "begun_ns": trace.steps.filter(known),
        "told_ns": trace.steps.filter(known).with_columns(ts_ns="formed_ns"),
    }
    when = pl.col("ts_ns").min().clip(-FAR_NS, FAR_NS)
    of_rows, decided, begun, formed = (
        rows.group_by(STEP).agg(when.alias(name)) for name, rows in told.items()
    )
    return (
        begun.join(of_rows, on=STEP, how="full", coalesce=True)
        .join(decided, on=STEP, how="left")
        .join(formed, on=STEP, how="left")
        .select(*STEP, formed_ns=pl.coalesce("told_ns", "rows_ns", "decided_ns", "begun_ns"))
        .sort("rank", "formed_ns", "step")
    )


def last_steps(trace: Trace) -> pl.LazyFrame:
    """The step at which the recording of each rank ends: rank, step, ts_ns, end_ns, has_no_end.

    That is the first that never ended after the last that did: an engine that schedules ahead has
    formed another batch meanwhile, and one that writes a step when it has ended has no step of it
    yet, only the rows of its batch. Where all have ended, or no end is known, it is the last one.
    """
    known = pl.col("step").is_not_null() & pl.col("ts_ns").is_not_null()
    begun = trace.steps.filter(known).select(*STEP, "ts_ns", "dur_ns")
    rows = trace.batch_rows.filter(known).select(*STEP, "ts_ns")
    last_ended = pl.col("place").filter(pl.col("dur_ns").is_not_null()).max().over("rank")
    last = pl.col("place").max().over("rank")
    wanted = pl.min_horizontal(last_ended.fill_null(last) + 1, last)
    return (
        pl.concat([begun, rows], how="diagonal")
        .group_by(STEP)
        .agg(pl.col("ts_ns").min().clip(-FAR_NS, FAR_NS), pl.col("dur_ns").max().clip(0, FAR_NS))
        .sort("rank", "ts_ns", "step")
        .with_columns(place=pl.int_range(pl.len()).over("rank"))
        .filter(pl.col("place") == wanted)
        .select(
            *STEP, "ts_ns", end_ns=pl.col("ts_ns") + pl.col("dur_ns").fill_null(0),
            has_no_end=pl.col("dur_ns").is_null(),
        )
    )  # fmt: skip


def with_left_out(steps: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """Add num_left_out: requests that run, could decode, and are not in the step's batch.

    They are those that run when the batch was formed and have no row, but for those that were not
    ready by their own account. Where events of requests are known, no more are counted than had
    their first token then: a prompt of which a part is computed cannot decode.
    """
    formed_then = steps.join(when_formed(trace), on=STEP, how="left")
    known = num_holding(formed_then, "formed_ns", not_ready(trace), "num_unready")
    absent = pl.col("num_running") - pl.col("num_reqs") - pl.col("num_unready")
    num_absent = absent.clip(lower_bound=0)
    if not trace.has("lifecycle"):
        return known.with_columns(num_left_out=num_absent).drop("formed_ns", "num_unready")
    decodable = _decodable(trace).rename({"ts_ns": "since_ns"})
    return (
        known.sort("formed_ns")
        .join_asof(
            decodable, left_on="formed_ns", right_on="since_ns", by="rank", check_sortedness=False
        )
        .with_columns(
            num_left_out=pl.min_horizontal(num_absent, pl.col("num_decodable").fill_null(0))
        )
        .drop("num_decodable", "since_ns", "formed_ns", "num_unready", strict=False)
    )


def _decodable(trace: Trace) -> pl.LazyFrame:
    """How many requests have their first token and run: rank, ts_ns, num_decodable from then on."""
    event = pl.col("event")
    is_first = event == "first-token"
    change = (
        pl.when(is_first | (event == "resume"))
        .then(1)
        .when(event.is_in(["preempt", *ENDS]))
        .then(-1)
        .otherwise(0)
    )
    first_ns = pl.col("ts_ns").filter(is_first).min().over(REQUEST)
    return (
        events(trace)
        .with_columns(_first_ns=first_ns, change=change)
        .filter(pl.col("ts_ns") >= pl.col("_first_ns"))
        .group_by("rank", "ts_ns")
        .agg(pl.col("change").sum())
        .sort("ts_ns")
        .select("rank", "ts_ns", num_decodable=pl.col("change").cum_sum().over("rank"))
    )


def num_rows(phase: str) -> pl.Expr:
    """How many rows of a phase a kernel has to do with: one for each token, drafts included."""
    by_request = pl.col(f"num_{phase}_reqs").cast(pl.Int64)
    return pl.coalesce(pl.col(f"num_{phase}_tokens"), by_request)


def path_names(executed_path: pl.Expr) -> pl.Expr:
    """The names of the paths that a step ran: it may name its kind first, and several of them.

    `mixed: grouped-gemm + fused` and `device-write, ragged-decode` are two paths each.
    """
    names = executed_path.str.replace(r"^(prefill|decode|mixed): ", "")
    return names.str.replace_all(", ", " + ", literal=True).str.split(" + ")


def rows(trace: Trace) -> pl.LazyFrame:
    """`batch_rows` of which step and request are known."""
    known = pl.col("step").is_not_null() & pl.col("request").is_not_null()
    numbers = pl.col("num_tokens", "num_computed", "prompt_len").clip(-FAR_NS, FAR_NS)
    return trace.batch_rows.filter(known).with_columns(
        numbers, pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    )


def tokens(trace: Trace) -> pl.LazyFrame:
    """`outputs` that are tokens, not placeholders, with `from_step`: whose logits they come from.

    Where that was not recorded, it is the step that they were written in.
    """
    known = pl.col("request").is_not_null() & pl.col("ts_ns").is_not_null()
    is_token = ~pl.col("is_placeholder").fill_null(value=False)
    return trace.outputs.filter(known, is_token).with_columns(
        pl.col("ts_ns").clip(-FAR_NS, FAR_NS), from_step=pl.coalesce("source_step", "step")
    )
