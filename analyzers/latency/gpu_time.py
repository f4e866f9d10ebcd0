"""What a rank's GPU did at each moment, and why it did nothing.

At each moment one thing holds, the first of these: the GPU executed a matrix multiplication,
attention, another kernel, a collective (exposed, as nothing was computed meanwhile), a copy; what
had been launched had not begun, or the CPU was blocked until it had ended (`gpu-wait`); the CPU was
in a step that launched something (`launch`). See docs/decisions/0013.
"""

from __future__ import annotations

import polars as pl

from stepscope.analyzers.latency.kernel_kinds import KINDS, kind_of
from stepscope.ingest.derive.states import step_times
from stepscope.ingest.schema import ON_DEVICE
from stepscope.ingest.times import FAR_NS
from stepscope.ingest.trace import Trace

CALLS = ("cuda_runtime", "cuda_driver", "hip_runtime", "hip_driver", "hip_api", "runtime", "driver")
BLOCKS = r"Synchronize|Memcpy"
NEVER_BLOCKS = "Async"
SPAN = ("rank", "from_ns", "to_ns")
Layers = list[tuple[str, pl.LazyFrame]]


def executed(trace: Trace) -> pl.DataFrame:
    """Kernels and copies: rank, step, correlation, from_ns, to_ns and kind (see `kernel_kinds`)."""
    asked = ("rank", "step", "correlation", "name", "category")
    return with_kinds(on_gpu(trace).select(*asked, *times()).collect())


def with_kinds(ran: pl.DataFrame) -> pl.DataFrame:
    """The kind of each instead of its name and category: words are looked for once in a name."""
    what = ran.select("name", "category").unique()
    kinds = what.with_columns(kind=kind_of(pl.col("name"), pl.col("category")))
    return ran.join(kinds, on=["name", "category"], nulls_equal=True).drop("name", "category")


def on_gpu(trace: Trace) -> pl.LazyFrame:
    """The rows of `spans` that a GPU executed, of which it is known how long that took."""
    return of_gpu(trace.spans)


def of_gpu(spans: pl.LazyFrame) -> pl.LazyFrame:
    """Those of some rows of `spans` that a GPU executed."""
    return spans.filter(_category().is_in(ON_DEVICE), pl.col("dur_ns").is_not_null())


def windows(trace: Trace) -> pl.DataFrame:
    """The time span that every GPU figure is a share of: rank, from_ns, to_ns.

    It is from the first begin to the last end of a rank's steps and of what its GPUs executed. In a
    rank without steps it is that of all spans with a duration: instants, such as the end of a
    profiler's recording, do not extend it. The end of a last step counts if it is known.
    """
    from_ns, to_ns = pl.col("from_ns").min(), pl.col("to_ns").max()
    known = step_times(trace).filter(pl.col("from_ns").is_not_null())
    steps = known.select("rank", "from_ns", pl.coalesce("to_ns", "from_ns"))
    lasted = trace.spans.filter(pl.col("ts_ns").is_not_null(), pl.col("dur_ns").is_not_null())
    ran = of_gpu(lasted).select("rank", *times()).join(steps, on="rank", how="semi")
    others = lasted.select("rank", *times()).join(steps, on="rank", how="anti")
    return pl.concat([steps, ran, others]).group_by("rank").agg(from_ns, to_ns).collect()


def moments(trace: Trace, ran: pl.DataFrame) -> Layers:
    """When each cause holds: rank, from_ns, to_ns; where several do, the first of them counts."""
    busy: Layers = [(kind, ran.lazy().filter(pl.col("kind") == kind)) for kind in KINDS]
    told = _with_launch(trace, ran).lazy()
    waits = pl.concat([_pending(told), _returned_late(told), _blocked(trace)])
    every = [*busy, ("gpu-wait", waits), ("launch", _launching(trace))]
    return [(cause, spans.select(SPAN)) for cause, spans in every]


def _with_launch(trace: Trace, ran: pl.DataFrame) -> pl.DataFrame:
    """What was executed and launched in sight, and when the call that launched it was made."""
    is_call = pl.col("correlation").is_not_null() & ~_category().is_in(ON_DEVICE)
    calls = trace.spans.filter(is_call, pl.col("dur_ns").is_not_null())
    innermost = (
        calls.select("rank", "correlation", *times())
        .sort("to_ns")
        .group_by("rank", "correlation")
        .agg(called_ns=pl.col("from_ns").first(), returned_ns=pl.col("to_ns").first())
    )
    return ran.join(innermost.collect(), on=["rank", "correlation"])


def _pending(told: pl.LazyFrame) -> pl.LazyFrame:
    """From the return of a launch until what it launched begins."""
    return told.select("rank", from_ns="returned_ns", to_ns="from_ns")


def _returned_late(told: pl.LazyFrame) -> pl.LazyFrame:
    """Calls for a copy that had ended when they returned: of pageable memory, whatever the name."""
    waited = told.filter(pl.col("kind") == "copy", pl.col("returned_ns") >= pl.col("to_ns"))
    return waited.select("rank", from_ns="called_ns", to_ns="returned_ns")


def _blocked(trace: Trace) -> pl.LazyFrame:
    """Calls that return when the GPU is done: synchronisations, copies that say nothing else."""
    name = pl.col("name")
    blocks = name.str.contains(BLOCKS) & ~name.str.contains(NEVER_BLOCKS, literal=True)
    calls = trace.spans.filter(_category().is_in(CALLS), blocks, pl.col("dur_ns").is_not_null())
    return calls.select("rank", *times())


def _launching(trace: Trace) -> pl.LazyFrame:
    """When the CPU was in a step of which it is known what it launched."""
    known = trace.steps.filter(pl.col("gpu_ts_ns").is_not_null(), pl.col("cpu_dur_ns") > 0)
    began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    return known.select("rank", from_ns=began, to_ns=began + pl.col("cpu_dur_ns").clip(0, FAR_NS))


def _category() -> pl.Expr:
    return pl.col("category").str.to_lowercase()


def times() -> tuple[pl.Expr, pl.Expr]:
    """When a span began and ended, as `from_ns` and `to_ns`, far enough from what int64 holds."""
    began = pl.col("ts_ns").clip(-FAR_NS, FAR_NS)
    return began.alias("from_ns"), (began + pl.col("dur_ns").clip(0, FAR_NS)).alias("to_ns")
