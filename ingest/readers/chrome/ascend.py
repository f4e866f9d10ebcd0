"""Ascend NPU profiles in Chrome JSON: msprof, torch_npu, MindStudio's simulator.

Events in msprof's timeline (`msprof_*.json`) have no category; it follows from their process.
torch_npu's `trace_view.json` is the same timeline with PyTorch's events. "Ascend Hardware" has the
streams of a device, whose tasks have a "Task Type" (AI_CORE, AI_VECTOR_CORE, MIX_AIC, MIX_AIV,
...), and "Step Trace" threads with its iterations. "Communication" has the operations of HCCL and,
by plane, their parts; "CANN" the host's calls; "Python" PyTorch's operators. "Overlap Analysis"
repeats all of these as intervals, and is not counted again. Through kineto, torch_npu writes
kernels like those of any other device, with their `type`.

`msprof op simulator` writes instructions: a process is a core (`core0.veccore0`), and a thread is
one of its pipes.

The formats: https://gitcode.com/Ascend/msprof (`analysis/csrc/application/timeline`), torch_npu
(`torch_npu/profiler/analysis`, `csrc/profiler/mspti_activity_profiler.cpp`), msopprof's manual.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from stepscope.ingest.derive.axis import different
from stepscope.ingest.derive.launches import GPU_ANNOTATION, device_of, on_device
from stepscope.ingest.derive.npu import TASK_TYPE, core_shape, work_category
from stepscope.ingest.derive.step_tags import parse_tag, step_marker
from stepscope.ingest.schema import COLLECTIVE
from stepscope.ingest.storage.spool import Spool, unpacked

TORCH_NPU, MSPROF, KINETO_NPU, SIMULATOR, OPERATOR_PIPES = (
    "torch_npu (msprof trace_view)", "msprof (trace_view)", "torch_npu (kineto)",
    "MindStudio simulator (msprof op simulator)", "MindStudio msprof op (pipes of one operator)",
)  # fmt: skip
RUNTIME = "privateuse1_runtime"
_DEVICE = r"^(?:Ascend Hardware|Task Scheduler|Communication|HCCL)\b.* / "
_PLACES = (
    ("step trace", rf"{_DEVICE}.*Step Trace|^Step Trace\b"),
    ("operation", rf"{_DEVICE}(?:Group .* )?Communication(?: \d+)?(?: #\d+)?$"),
    ("plane", rf"{_DEVICE}Plane \d+"),
    ("stream", r"^(?:Ascend Hardware|Task Scheduler)\b"),
    ("cann", r"^(?:CANN|AscendCL|GE|Runtime)\b"),
    ("gc", r"^Python GC\b"),
    ("python", r"^Python\b"),
    ("overlap", r"^Overlap Analysis\b"),
)
"""Kinds of tracks by the names of process and thread; the first match counts."""
_TOLD_BY = ("stream", "overlap")
_OF_HOST = {"cann": "runtime", "python": "cpu_op"}
_TORCH = {"cpu_op", "enqueue", "dequeue"}
_NO_WORK = pl.lit("npu_task")
"""The category of stream tasks that are no work: waits, records of events."""
_WAITS = r"(?i)^(?:EVENT|NOTIFY|WRITE_VALUE|WAIT|PROFILING_|LABEL|STREAM|PLACE_HOLDER)"
_ITERATION = r"^(?:Iteration|Step)[ _#]*(\d{1,15})$"
_CORE = r"^core\d+\.(?:cube|vec)core\d+(?: /|$)"
_ONE_OPERATOR = (
    "instructions of a single operator, by core (cubecore is an AIC, veccore an AIV) and pipe; it "
    "has no steps, requests or kernels of a run"
)


@dataclass(frozen=True, slots=True)
class Npu:
    """The producer of an NPU profile, the number of its kernels by cores, and notes."""

    producer: str
    kernels: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_npu(
    spans: pl.DataFrame, tags: pl.Series, args: Spool
) -> tuple[pl.DataFrame, pl.Series, Npu | None]:
    """Return spans with the categories of their processes, and tags with msprof's iterations.

        `spans`, `tags` and `args` are those of `chrome_tables`, row by row. Spans of files that no
    Ascend tool wrote stay as they are.
    """
    bases = pl.DataFrame({"base": different(spans["base"])}, schema={"base": pl.String})
    if _any(bases, _CORE):
        return spans, tags, _simulator(args)
    places = bases.with_columns(place=_place())
    if set(_TOLD_BY).isdisjoint(places["place"].drop_nulls()):
        return spans, tags, _through_kineto(spans, bases, args)
    rows = _rows(spans, places, args)
    spans = spans.with_columns(_category(rows))
    spans, tags = _with_iterations(spans, tags, rows)
    is_torch = (places["place"] == "python").any() or not _TORCH.isdisjoint(
        different(spans["category"])
    )
    producer = TORCH_NPU if is_torch else MSPROF
    return spans, tags, Npu(producer, _num_kernels(spans["category"], rows["task_type"]))


def _any(bases: pl.DataFrame, pattern: str) -> bool:
    return bool(bases["base"].str.contains(pattern).any())


def _place() -> pl.Expr:
    place_of_base = pl.lit(None, pl.String)
    for place, pattern in reversed(_PLACES):
        is_there = pl.col("base").str.contains(pattern)
        place_of_base = pl.when(is_there).then(pl.lit(place)).otherwise(place_of_base)
    return place_of_base


def _task_types(args: Spool) -> pl.Series:
    """Return the type of each span's task, null if its args have none."""
    texts = unpacked("args", args.parts)
    return texts.select(pl.col("args").str.extract(TASK_TYPE)).collect().to_series()


def _rows(spans: pl.DataFrame, places: pl.DataFrame, args: Spool) -> pl.DataFrame:
    """Return place, category, name and task type of each span, row by row."""
    rows = spans.select(pl.col("base", "category", "name").cast(pl.String))
    rows = rows.with_columns(_task_types(args).alias("task_type"))
    return rows.join(places, on="base", how="left", maintain_order="left")


def _category(rows: pl.DataFrame) -> pl.Series:
    """Return the category of each span, or the one implied by its process and task type."""
    place, task_type = pl.col("place"), pl.col("task_type")
    has_types = bool(rows.select((place.eq("stream") & task_type.is_not_null()).any()).item())
    # A copy is recognized by its name: its type is that of the engine that copied.
    is_copy = (pl.col("name") == "MEMCPY_ASYNC") & (place == "stream")
    by_type = pl.when(task_type.is_not_null()).then(pl.coalesce(work_category(task_type), _NO_WORK))
    by_name = pl.coalesce(
        work_category(pl.col("name")),
        pl.when(pl.col("name").str.contains(_WAITS)).then(_NO_WORK),
        pl.lit("kernel"),
    )
    task = pl.when(is_copy).then(pl.lit("gpu_memcpy")).otherwise(by_type if has_types else by_name)
    implied = (
        pl.when(place == "stream").then(task)
        .when(place == "operation").then(pl.lit(COLLECTIVE))
        .otherwise(place.replace_strict(_OF_HOST, default=None, return_dtype=pl.String))
    )  # fmt: skip
    return _as_enum(rows.select(pl.coalesce("category", implied)).to_series())


def _num_kernels(category: pl.Series, task_type: pl.Series) -> dict[str, int]:
    """Count the kernels on AICs, on AIVs, and on both; those on other cores are not counted."""
    spans = pl.DataFrame([category.cast(pl.String).alias("category"), task_type.alias("task_type")])
    kernels = spans.filter(pl.col("category") == "kernel")
    shapes = kernels.select(core_shape(pl.col("task_type"))).to_series().drop_nulls()
    counts = dict(shapes.value_counts().iter_rows())
    return {shape: counts[shape] for shape in ("AIC", "AIV", "MIX") if shape in counts}


def _with_iterations(
    spans: pl.DataFrame, tags: pl.Series, rows: pl.DataFrame
) -> tuple[pl.DataFrame, pl.Series]:
    """Make iterations of "Step Trace" steps, if no annotation marks a step.

    The tasks of the device's streams belong to them, so that all of them get the same base.
    """
    number = pl.when(pl.col("place") == "step trace").then(pl.col("name").str.extract(_ITERATION))
    numbers = rows.select(number.cast(pl.Int64).alias("number"), "base", "place")
    iterations = np.flatnonzero(numbers["number"].is_not_null().to_numpy())
    if not iterations.size or any(parse_tag(name) for name in different(spans["name"])):
        return spans, tags
    steps = numbers["number"].gather(iterations).to_list()
    tags = tags.scatter(iterations, [step_marker("Iteration", step) for step in steps])
    of_device = pl.col("place").is_in(["step trace", "stream"]).fill_null(value=False)
    base = numbers.select(pl.when(of_device).then(device_of(pl.col("base"))).otherwise("base"))
    category = spans["category"].cast(pl.String).scatter(iterations, GPU_ANNOTATION)
    return spans.with_columns(
        _as_enum(base.to_series()).alias("base"), _as_enum(category).alias("category")
    ), tags


def _through_kineto(spans: pl.DataFrame, bases: pl.DataFrame, args: Spool) -> Npu | None:
    """Recognize what torch_npu writes through kineto: streams of an NPU."""
    is_named = _any(bases, r"^(?:NPU|Ascend)\b.* / ")
    # Other devices unknown to PyTorch have this category, too.
    if not is_named and RUNTIME not in different(spans["category"]):
        return None
    if not on_device(spans["category"]).any():
        return None
    kernels = _num_kernels(spans["category"], _task_types(args))
    return Npu(KINETO_NPU, kernels) if is_named or kernels else None


def _simulator(args: Spool) -> Npu:
    """A trace of one operator: the simulator's instructions have args, measured pipes do not."""
    has_args = pl.col("args").is_not_null().any()
    is_simulated = unpacked("args", args.parts).select(has_args).collect().item()
    return Npu(SIMULATOR if is_simulated else OPERATOR_PIPES, notes=(_ONE_OPERATOR,))


def _as_enum(texts: pl.Series) -> pl.Series:
    return texts.cast(pl.Enum(texts.drop_nulls().unique(maintain_order=True)))
