"""The cause of each interval, and of what in it has another cause than the rest.

One interval, several attributions: of one in a batch, its step may have spent some in a collective;
of one without budget, some while a chunk ran. Each is a share of its interval, not a piece that
lies somewhere in it. They add up to the interval exactly, as the first is what the others leave. A
run as a whole is cut finer than its steps, so that what was when can be seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.analyzers.latency import causes
from stepscope.analyzers.latency.causes import BY_NAME
from stepscope.analyzers.latency.device_time import collectives, computing, watched
from stepscope.analyzers.latency.gpu_time import Layers, moments
from stepscope.analyzers.latency.intervals import (
    DELIVERY,
    FORMED,
    FRONT_END,
    NUMBER_OF,
    PREEMPTED,
    WAITING,
)
from stepscope.analyzers.views.interval_union import covered, merged, shares
from stepscope.analyzers.views.known import knows
from stepscope.ingest.trace import Trace

LENGTH = pl.col("to_ns") - pl.col("from_ns")
OPEN = (NUMBER_OF["unknown"], NUMBER_OF["step"])
NUM_CELLS = 2_000  # of a run: no screen is wider


def attributions(
    trace: Trace, intervals: pl.LazyFrame, steps: pl.LazyFrame, ran: pl.DataFrame
) -> pl.DataFrame:
    """What `intervals` went to: line, rank, from_ns, to_ns, is_before_first, cause (a number), ns.

    `ran` is what GPUs executed; of their ranks, a batch is as long as that lasts.
    """
    caused = _caused(intervals, trace).collect().lazy()
    scheduled, left_out = caused.filter("is_scheduled"), caused.filter(~pl.col("is_scheduled"))
    has_gpu = pl.col("rank").is_in(ran["rank"].unique().implode())
    is_open = pl.col("cause").is_in(OPEN)
    has_no_budget = pl.col("cause") == NUMBER_OF["no-budget"]
    every = [
        *_on_the_gpu(trace, scheduled.filter(has_gpu), ran),
        *_on_the_device(trace, scheduled.filter(~has_gpu), steps),
        *_split(left_out.filter(~is_open & ~has_no_budget), ()),
        *_behind_a_chunk(trace, left_out.filter(has_no_budget), steps),
        *_idle(left_out.filter(is_open), steps),
    ]
    return pl.concat(every).collect()


def run_attributions(
    trace: Trace, intervals: pl.LazyFrame, steps: pl.LazyFrame, ran: pl.DataFrame
) -> pl.DataFrame:
    """The same of a run as a whole: by what its GPU did, where that is known."""
    if ran.is_empty():
        return attributions(trace, intervals, steps, ran)
    has_gpu = pl.col("rank").is_in(ran["rank"].unique().implode())
    on_gpu = intervals.filter(has_gpu).with_columns(cause=NUMBER_OF["idle"]).collect().lazy()
    under_way = steps.filter(~pl.col("kind").is_in(["idle", "dummy"]).fill_null(value=False))
    layers = [*moments(trace, ran), ("unknown", under_way)]
    found = [
        attributions(trace, intervals.filter(~has_gpu), steps, ran.clear()),
        _rejoined(pl.concat(_by_layer(_in_cells(on_gpu), layers)), on_gpu).collect(),
    ]
    return pl.concat(found)


def _in_cells(intervals: pl.LazyFrame) -> pl.LazyFrame:
    """Cut what is longer than a cell, of which the whole of a line has `NUM_CELLS`."""
    whole = (pl.col("to_ns").max() - pl.col("from_ns").min()).over("line")
    number = pl.int_ranges(pl.max_horizontal(-(-LENGTH // pl.col("cell_ns")), 1))
    begins = pl.col("from_ns") + pl.col("cell") * pl.col("cell_ns")
    ends = pl.min_horizontal(begins + pl.col("cell_ns"), "to_ns")
    return (
        intervals.with_columns(cell_ns=(whole // NUM_CELLS).clip(lower_bound=1))
        .with_columns(cell=number)
        .explode("cell")
        .with_columns(from_ns=begins, to_ns=ends)
        .drop("cell", "cell_ns")
    )


def _rejoined(attributed: pl.LazyFrame, intervals: pl.LazyFrame) -> pl.LazyFrame:
    """Make one of neighbours of one interval that have one cause and no other."""
    starts = intervals.select("line", "from_ns", is_start=pl.lit(value=True))
    is_whole = pl.col("ns") == LENGTH
    of_one = ("line", "cause", "is_before_first")
    goes_on = (
        is_whole
        & is_whole.shift(1)
        & pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift(1)) for name in of_one)
        & (pl.col("from_ns") == pl.col("to_ns").shift(1))
        & pl.col("is_start").is_null()
    )
    return (
        attributed.filter((pl.col("ns") > 0) | (LENGTH == 0))
        .join(starts.unique(), on=["line", "from_ns"], how="left")
        .sort("line", "from_ns", "cause")
        .with_columns(_part=(~goes_on.fill_null(value=False)).cum_sum())
        .group_by("_part", maintain_order=True)
        .agg(
            pl.col("line", "rank", "from_ns").first(),
            pl.col("to_ns").last(),
            pl.col("is_before_first", "cause").first(),
            pl.col("ns").sum(),
        )
        .drop("_part")
    )


def _caused(intervals: pl.LazyFrame, trace: Trace) -> pl.LazyFrame:
    """What holds of an interval, by what counts first: its delivery, batch, preemption, reason.

    A queue of a rank without decisions is one whose reasons are not recorded.
    """
    ranks = {
        table: trace.table(table).select("rank").unique().collect()["rank"].implode()
        for table in ("decisions", "steps")
    }
    has_reason = (pl.col("reason") > 0) & pl.col("rank").is_in(ranks["steps"])
    is_queued = (pl.col("state") == WAITING) & ~pl.col("rank").is_in(ranks["decisions"])
    is_out = (pl.col("state") == DELIVERY) | pl.col("is_under_way")
    cause = (
        pl.when(is_out)
        .then(NUMBER_OF["delivery"])
        .when(pl.col("work") > 0)
        .then("work")
        .when(pl.col("state") == FRONT_END)
        .then(NUMBER_OF["front-end"])
        .when(pl.col("state") == PREEMPTED)
        .then(NUMBER_OF["preempted"])
        .when(is_queued & ~has_reason)
        .then(NUMBER_OF[causes.WAITING])
        .when(pl.col("reason") > 0)
        .then("reason")
        .otherwise(NUMBER_OF["unknown"])
    )
    kept = ("line", "rank", "from_ns", "to_ns", "is_before_first")
    is_scheduled = (pl.col("work") > 0) & (pl.col("work") != FORMED) & ~is_out
    return intervals.select(*kept, cause=cause, is_scheduled=is_scheduled)


def _on_the_device(
    trace: Trace, scheduled: pl.LazyFrame, steps: pl.LazyFrame
) -> Sequence[pl.LazyFrame]:
    """Of a batch: what it waited for a collective, and when its device did nothing at all.

    What a collective overlaps with computing costs nothing.
    """
    if not any(trace.has(table) for table in ("collectives", "core_spans", "spans")):
        return _split(scheduled, ())
    computed = computing(trace)
    used = pl.concat([computed, collectives(trace)])
    told = scheduled
    for spans, into in ((computed, "_computed"), (used, "_used"), (watched(steps, computed), "_w")):
        told = covered(told, merged(spans).collect().lazy(), into)
    exposed = pl.col("_used") - pl.col("_computed")
    waits = (pl.col("_w") - pl.col("_used")).clip(0, LENGTH - exposed)
    split = told.with_columns(communication_ns=exposed, dispatch_ns=waits)
    return _split(split.drop("_computed", "_used", "_w"), ("communication", "dispatch"))


def _on_the_gpu(trace: Trace, scheduled: pl.LazyFrame, ran: pl.DataFrame) -> Sequence[pl.LazyFrame]:
    """Of a batch: what it waited for a collective, for the GPU, or for the CPU to launch it."""
    if ran.is_empty():
        return ()
    kept = ("communication", "gpu-wait", "launch")
    return _by_layer(scheduled, moments(trace, ran), kept)


def _by_layer(
    intervals: pl.LazyFrame, layers: Layers, kept: Sequence[str] | None = None
) -> Sequence[pl.LazyFrame]:
    """By the layers of causes that cover each other; those not `kept` are the interval's."""
    named = [(BY_NAME[cause].column, spans) for cause, spans in layers]
    causes = [cause for cause, _ in layers] if kept is None else kept
    return _split(shares(intervals, named), causes)


def _behind_a_chunk(
    trace: Trace, intervals: pl.LazyFrame, steps: pl.LazyFrame
) -> Sequence[pl.LazyFrame]:
    """Of the time without budget, that of the steps in which a chunk of a prompt was computed.

    Where no step says how long it took, a batch is taken to last until the next one, and which of
    the two it was is unknown.
    """
    goes_on = (pl.col("num_computed") > pl.col("num_cached").fill_null(0)).fill_null(value=False)
    is_chunk = (~pl.col("is_final_chunk")).fill_null(value=False) | goes_on
    is_prefill = (pl.col("phase") == "prefill") & ~pl.col("is_recompute").fill_null(value=False)
    chunked = trace.batch_rows.filter(is_prefill, is_chunk).select("rank", "step").unique()
    union = merged(steps.join(chunked, on=["rank", "step"], how="semi"))
    cause = "chunk" if knows(trace, "steps.ts_ns", "steps.dur_ns") else "unknown"
    return _split(covered(intervals, union, BY_NAME[cause].column), (cause,))


def _idle(intervals: pl.LazyFrame, steps: pl.LazyFrame) -> Sequence[pl.LazyFrame]:
    """Of the time that nothing explains, that in which no step ran, where it is told which did."""
    ran = merged(steps.filter(pl.col("kind").ne_missing("idle")))
    told = covered(intervals, ran, "_ran_ns").join(
        steps.select("rank", _has_steps=pl.lit(value=True)).unique(), on="rank", how="left"
    )
    known = pl.when("_has_steps")
    told = told.with_columns(
        idle_ns=known.then(LENGTH - pl.col("_ran_ns")).otherwise(0),
        cause=known.then("cause").otherwise(NUMBER_OF["unknown"]),
    )
    return _split(told.drop("_ran_ns", "_has_steps"), ("idle",))


def _split(intervals: pl.LazyFrame, causes: Sequence[str]) -> Sequence[pl.LazyFrame]:
    """What the columns of `causes` say of intervals, and the rest with the interval's own."""
    kept = ("line", "rank", "from_ns", "to_ns", "is_before_first")
    columns = [BY_NAME[name].column for name in causes]
    rest = LENGTH - sum((pl.col(column) for column in columns), pl.lit(0))
    number = pl.col("cause").cast(pl.UInt8)
    return [
        intervals.select(*kept, cause=number, ns=rest),
        *(
            intervals.select(
                *kept, cause=pl.lit(NUMBER_OF[name], pl.UInt8), ns=pl.col(column)
            ).filter(pl.col("ns") > 0)
            for name, column in zip(causes, columns, strict=True)
        ),
    ]  # fmt: skip
