"""What core groups did in all: how long each core ran and was held, and what kernels cost on them.

Running and held are what `ingest.derive.states` says; where two blocks run on a core at once, that
time counts once.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.rules.cor.naming import with_kernel
from stepscope.analyzers.rules.cor.occupancy import dispatched, mix_blocks
from stepscope.analyzers.views.interval_union import merged
from stepscope.analyzers.views.known import knows
from stepscope.ingest.derive.states import with_held
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

CORE = ("rank", "group", "core_kind", "core")
KERNEL = ("kernel", "shape")


def core_use(trace: Trace) -> pl.DataFrame:
    """A row for each core that was given a block: what it did in the window of its rank.

    Columns: rank, group, core_kind, core, num_blocks, run_ns, held_ns and window_ns: from the first
    dispatch (or begin) of a block of the rank to the last moment that is told of any. A block that
    never ended runs until then. run_ns is null where no end is recorded, held_ns where no end or no
    dispatch is.
    """
    knows_runs, knows_holds = _known_times(trace)
    blocks = _placed(trace)
    length = pl.col("to_ns") - pl.col("from_ns")
    ran = merged(blocks, CORE).group_by(CORE).agg(run_ns=length.sum())
    return (
        blocks.group_by(CORE)
        .agg(
            num_blocks=pl.len(),
            held_ns=(pl.col("from_ns") - pl.col("held_ns")).sum(),
            window_ns=pl.col("window_ns").first(),
        )
        .join(ran, on=CORE, how="left", nulls_equal=True)
        .with_columns(
            run_ns=pl.when(pl.lit(knows_runs)).then(pl.col("run_ns").fill_null(0)),
            held_ns=pl.when(pl.lit(knows_holds)).then("held_ns"),
        )
        .sort(CORE, nulls_last=True)
        .collect()
    )


def _known_times(trace: Trace) -> tuple[bool, bool]:
    """Tell whether it is known how long blocks ran, and how long cores were held for them.

    Where no block has an end and tasks retired all the same, ends were not recorded.
    """
    runs = knows(trace, "core_spans.end_ns") or not knows(trace, "tasks.retired_ns")
    return runs, runs and knows(trace, "core_spans.dispatch_ns")


def by_kind(use: pl.DataFrame) -> pl.DataFrame:
    """The cores of each kind together, with num_cores, num_blocks, run_ns, held_ns and window_ns.

    `use` is what `core_use` gives; windows add up, so that a share is that of the average core.
    """
    return (
        use.group_by("core_kind")
        .agg(
            pl.len().alias("num_cores"),
            pl.col("num_blocks", "window_ns").sum(),
            *(sum_of_all(name) for name in ("run_ns", "held_ns")),
        )
        .sort("core_kind", nulls_last=True)
    )


def sum_of_all(name: str) -> pl.Expr:
    """The sum of a column; null where a row has no value."""
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)


def _placed(trace: Trace) -> pl.LazyFrame:
    """Blocks with a core and a time: since when they held it, from_ns, to_ns, and the window."""
    far = pl.col("ts_ns", "dispatch_ns", "end_ns").clip(-FAR_NS, FAR_NS)
    spans = trace.core_spans.filter(
        pl.col("rank").is_not_null(), pl.col("core").is_not_null(), pl.col("ts_ns").is_not_null()
    ).with_columns(far)
    windows = spans.group_by("rank").agg(
        first_ns=pl.min_horizontal("ts_ns", "dispatch_ns").min(),
        last_ns=pl.max_horizontal("ts_ns", "end_ns").max(),
    )
    return (
        with_held(spans)
        .join(windows, on="rank")
        .select(
            *CORE, "task", "block", "shape", "held_ns",
            from_ns="ts_ns",
            to_ns=pl.coalesce("end_ns", "last_ns"),
            window_ns=pl.col("last_ns") - pl.col("first_ns"),
        )
    )  # fmt: skip


def kernels_on_cores(trace: Trace) -> pl.DataFrame:
    """What each kernel cost, for each shape that it ran in; what ran longest comes first.

    Columns: kernel (the name of its tasks, with `*` for numbers), shape, num_tasks, num_blocks (of
    which a part ended), held_ns (cores that waited for its blocks to begin), run_ns (of all parts),
    skew_ns and most_skew_ns (of its MIX blocks: from the first part's begin to the last one's;
    null of others), and dispatch_ns (see `dispatched`; null where no block says when it was ready).
    held_ns is null where no dispatch is recorded.
    """
    held = _placed(trace).group_by("rank", "task", "shape").agg(
        held_ns=(pl.col("from_ns") - pl.col("held_ns")).sum()
    )  # fmt: skip
    number = pl.struct("task", "block").n_unique()
    ran = dispatched(trace).with_columns(pl.col("shape").cast(pl.String))
    ran = ran.group_by("rank", "task", "shape").agg(
        num_blocks=number,
        run_ns=pl.col("executed_ns").sum(),
        dispatch_ns=pl.col("overhead_ns").sum(),
    )
    skewed = mix_blocks(trace).group_by("rank", "task").agg(
        total_skew_ns=pl.col("skew_ns").sum(), most_skew_ns=pl.col("skew_ns").max()
    )  # fmt: skip
    by_task = ran.join(held, on=["rank", "task", "shape"], how="left").join(
        skewed, on=["rank", "task"], how="left"
    )
    knows_ready, knows_holds = knows(trace, "core_spans.ready_ns"), _known_times(trace)[1]
    is_mix = pl.col("shape") == "MIX"
    return (
        with_kernel(by_task.collect().lazy(), trace)
        .group_by(KERNEL)
        .agg(
            pl.struct("rank", "task").n_unique().alias("num_tasks"),
            pl.col("num_blocks", "held_ns", "run_ns", "dispatch_ns").sum(),
            skew_ns=pl.col("total_skew_ns").sum(),
            most_skew_ns=pl.col("most_skew_ns").max(),
        )
        .with_columns(
            dispatch_ns=pl.when(pl.lit(knows_ready)).then("dispatch_ns"),
            held_ns=pl.when(pl.lit(knows_holds)).then("held_ns"),
            skew_ns=pl.when(is_mix).then("skew_ns"),
        )
        .sort(-pl.col("run_ns"), *KERNEL)
        .collect()
    )
