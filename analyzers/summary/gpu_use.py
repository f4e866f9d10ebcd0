"""What the GPUs of a profile did in all: busy, in exposed communication, idle; kernels; steps.

What counts of what runs at the same time is what `gpu_time` says: a moment of computing hides the
communication beside it, and what is left of that is *exposed*.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.gpu_time import on_gpu, times, windows
from stepscope.analyzers.latency.kernel_kinds import KINDS, kind_of
from stepscope.analyzers.views.interval_union import shares
from stepscope.ingest.derive.launches import device_of
from stepscope.ingest.derive.npu import NPU_KERNELS, TASK_TYPE, core_shape
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

DEVICE = ("rank", "device")
USES = tuple(f"{kind}_ns" for kind in KINDS)


def gpu_use(trace: Trace) -> pl.DataFrame:
    """A row for each device that executed anything, in order.

    Columns: rank, device (as its tracks name it), window_ns (see `windows`), `gemm_ns` to `copy_ns`
    (see KINDS: of what ran at the same time, the first), busy_ns, which these add up to, idle_ns,
    the rest of the window, in_collectives_ns (exposed or not) and num_executed. Times are those
    within the window; num_executed counts all.
    """
    ran = _by_device(trace)
    devices = ran.select(DEVICE).unique().sort(DEVICE).with_row_index("place")
    numbered = ran.join(devices, on=DEVICE)
    window = devices.join(windows(trace), on="rank").select(
        pl.col("place").cast(pl.Int32).alias("rank"), "from_ns", "to_ns"
    )
    # Each device has an axis of its own, as each rank has elsewhere.
    own = numbered.select(
        pl.col("place").cast(pl.Int32).alias("rank"), "from_ns", "to_ns", "kind"
    ).lazy()
    told = by_kind(window.lazy(), own)
    in_collectives = [("in_collectives_ns", own.filter(kind="communication"))]
    collectives = (
        shares(window.lazy(), in_collectives).select("rank", "in_collectives_ns").collect()
    )
    counted = numbered.group_by(pl.col("place").cast(pl.Int32)).agg(num_executed=pl.len())
    return (
        devices.with_columns(pl.col("place").cast(pl.Int32))
        .join(told, left_on="place", right_on="rank")
        .join(collectives, left_on="place", right_on="rank", how="left")
        .join(counted, on="place")
        .with_columns(pl.col("in_collectives_ns").fill_null(0))
        .sort("place")
        .drop("place")
    )


def by_kind(windows: pl.LazyFrame, ran: pl.LazyFrame) -> pl.DataFrame:
    """How long of each window (rank, from_ns, to_ns) what `ran` (the same and kind) was of a kind.

    Columns: rank, `gemm_ns` to `copy_ns`, busy_ns, which these add up to, window_ns and idle_ns.
    """
    layers = [(f"{kind}_ns", ran.filter(kind=kind)) for kind in KINDS]
    length = pl.col("to_ns") - pl.col("from_ns")
    return (
        shares(windows, layers)
        .select("rank", *USES, busy_ns=pl.sum_horizontal(USES), window_ns=length)
        .with_columns(idle_ns=pl.col("window_ns") - pl.col("busy_ns"))
        .collect()
    )


def _by_device(trace: Trace) -> pl.DataFrame:
    ran = on_gpu(trace).filter(pl.col("ts_ns").is_not_null(), pl.col("track").is_not_null())
    return ran.select(
        "rank", *times(), device=device_of(pl.col("track")),
        kind=kind_of(pl.col("name"), pl.col("category")),
    ).collect()  # fmt: skip


def kernel_sums(ran: pl.LazyFrame) -> pl.DataFrame:
    """What was executed, by name: name, kind, num, total_ns, most_ns and share; most time first.

    `ran` are rows of `spans`, such as `on_gpu` gives.

    `share` is that of all times added up: what runs at once counts twice.
    """
    length = pl.col("dur_ns").clip(0, FAR_NS)
    sums = (
        ran.group_by("name", "category")
        .agg(num=pl.len(), total_ns=length.cast(pl.Int128).sum(), most_ns=length.max())
        .with_columns(kind=kind_of(pl.col("name"), pl.col("category")))
        .group_by("name", "kind")
        .agg(pl.col("num", "total_ns").sum(), pl.col("most_ns").max())
        .collect()
    )
    whole = max(int(sums["total_ns"].sum() or 0), 1)
    shared = sums.with_columns(share=pl.col("total_ns").cast(pl.Float64) / whole)
    return shared.sort("total_ns", "name", "kind", descending=[True, False, False])


def with_cores(sums: pl.DataFrame, trace: Trace) -> pl.DataFrame:
    """`kernel_sums` with the cores of an NPU that each kernel ran on (AIC, AIV, MIX).

    Of other devices they are left as they are.
    """
    if not trace.manifest.config.get(NPU_KERNELS):
        return sums
    cores = core_shape(pl.col("args").str.extract(TASK_TYPE))
    known = (
        on_gpu(trace)
        .select("name", cores=cores)
        .drop_nulls()
        .unique()
        .group_by("name")
        .agg(pl.col("cores").sort().str.join(", "))
    )
    return sums.join(known.collect(), on="name", how="left", maintain_order="left")


def steps_by_kind(trace: Trace) -> pl.DataFrame:
    """The steps by kind: kind, num, and what is known of them.

    Columns: mean_ns and most_ns (how long they took), num_tokens (prefill and decode together,
    of steps that tell of all that they have),
    and of those of which it is known, num_on_gpu, how busy_ns the GPU was with what they launched,
    and lasted_ns, how long these took.
    """
    length, busy = pl.col("dur_ns"), pl.col("gpu_busy_ns")
    on_device = busy.is_not_null() & length.is_not_null()
    counts = pl.col("num_prefill_tokens", "num_decode_tokens")
    tokens = pl.sum_horizontal(counts)
    # A step of one kind has no tokens of the other, whether it says so or not.
    are_known = (
        pl.when(pl.col("kind") == "prefill")
        .then(pl.col("num_prefill_tokens").is_not_null())
        .when(pl.col("kind") == "decode")
        .then(pl.col("num_decode_tokens").is_not_null())
        .otherwise(pl.all_horizontal(counts.is_not_null()))
    )
    return (
        trace.steps.with_columns(pl.col("kind").fill_null("unknown"))
        .group_by("kind")
        .agg(
            num=pl.len(),
            mean_ns=length.mean(),
            most_ns=length.max(),
            num_tokens=pl.when(are_known.any()).then(tokens.filter(are_known).sum()),
            num_on_gpu=on_device.sum(),
            busy_ns=busy.filter(on_device).sum(),
            lasted_ns=length.filter(on_device).sum(),
        )
        .sort(-pl.col("num").cast(pl.Int64), "kind")
        .collect()
    )


def longest_steps(trace: Trace, most: int) -> pl.DataFrame:
    """The `most` steps that took longest, in falling order, with all columns of `steps`."""
    lasted = trace.steps.filter(pl.col("dur_ns").is_not_null(), pl.col("step").is_not_null())
    return lasted.sort(-pl.col("dur_ns"), "rank", "step").head(most).collect()
