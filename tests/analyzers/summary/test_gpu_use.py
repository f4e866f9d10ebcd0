"""What is said of GPUs in all is what following every span one by one comes to."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.gpu_time import on_gpu
from stepscope.analyzers.latency.kernel_kinds import KINDS, kind_of
from stepscope.analyzers.summary.gpu_use import (
    USES,
    gpu_use,
    kernel_sums,
    longest_steps,
    steps_by_kind,
)  # fmt: skip
from stepscope.app.timeline.profile.gpu_load import BusyDevices
from stepscope.ingest.schema import ON_DEVICE, PHASES, TABLES
from stepscope.ingest.trace import Trace
from tests.analyzers.summary.every_trace import each_file, opened
from tests.tiers import slow
from tests.traces import trace_of

Intervals = list[tuple[int, int]]


def kernel(name: str, began: int, lasted: int, track: str = "GPU 0 / stream 7", **more: Any) -> Any:
    return {
        "track": track, "name": name, "category": "kernel", "ts_ns": began, "dur_ns": lasted,
        "form": "slice",
    } | more  # fmt: skip


def union(intervals: Intervals) -> int:
    """How long any of them lasts, one after the other."""
    total, reached = 0, -(2**62)
    for begun, ended in sorted(intervals):
        total += max(ended - max(begun, reached), 0)
        reached = max(reached, ended)
    return total


def executed(trace: Trace) -> list[dict[str, Any]]:
    rows = trace.spans.filter().collect().to_dicts()
    return [
        row
        for row in rows
        if (row["category"] or "").lower() in ON_DEVICE and row["dur_ns"] is not None
    ]


def kinds_of(ran: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Of each name with its category, which kind it is; that is tested in test_kernel_kinds."""
    named = sorted({(row["name"], row["category"]) for row in ran})
    frame = pl.DataFrame(named, schema={"name": pl.String, "category": pl.String}, orient="row")
    kinds = frame.select(kind_of(pl.col("name"), pl.col("category"))).to_series().to_list()
    return dict(zip(named, kinds, strict=True))


def test_communication_beside_computing_is_not_exposed() -> None:
    trace = trace_of(spans=[
        kernel("gemm", 0, 10), kernel("ncclAllReduce", 5, 10, "GPU 0 / stream 8"),
        {"track": "CPU / t", "name": "op", "category": "cpu_op", "ts_ns": 0, "dur_ns": 40},
    ])  # fmt: skip

    (row,) = gpu_use(trace).to_dicts()

    assert (row["gemm_ns"], row["communication_ns"], row["in_collectives_ns"]) == (10, 5, 10)
    assert (row["busy_ns"], row["idle_ns"], row["window_ns"]) == (15, 25, 40)


def test_the_window_is_that_of_steps_and_device_work_and_no_instant_extends_it() -> None:
    step = {"step": 1, "kind": "decode", "ts_ns": 10, "dur_ns": 50}
    frame = {"track": "CPU / t", "name": "main", "ts_ns": 0, "dur_ns": 99}
    instant = {"track": "", "name": "Record Window End", "ts_ns": 400, "dur_ns": None}
    spans = [kernel("gemm", 20, 20), kernel("ncclAllReduce", 55, 15), frame, instant]

    (with_steps,) = gpu_use(trace_of(steps=[step], spans=spans)).to_dicts()
    (without,) = gpu_use(trace_of(spans=spans)).to_dicts()

    assert (with_steps["window_ns"], with_steps["busy_ns"], with_steps["idle_ns"]) == (60, 35, 25)
    assert (without["window_ns"], without["busy_ns"]) == (99, 35)


@slow
@each_file
def test_an_instant_after_the_end_of_a_file_changes_no_figure_of_its_gpus(name: str) -> None:
    trace = opened(name)
    if not trace.has("spans"):
        pytest.skip("no spans")
    last = trace.spans.filter(pl.col("dur_ns").is_not_null()).sort("ts_ns").tail(1)
    at = pl.col("ts_ns") + pl.col("dur_ns") + 3_000_000
    instant = last.with_columns(at.alias("ts_ns"), dur_ns=pl.lit(None, pl.Int64), category=None)
    tables = {table.name: trace.table(table.name) for table in TABLES if trace.has(table.name)}
    spans = pl.concat([trace.spans, instant], how="vertical_relaxed")
    longer = Trace({**tables, "spans": spans}, trace.manifest, trace.name)

    assert gpu_use(longer).equals(gpu_use(trace))
    totals, unchanged = blame(longer).totals(), blame(trace).totals()
    assert [(cause.cause.name, cause.total_ns) for cause in totals] == [
        (cause.cause.name, cause.total_ns) for cause in unchanged
    ]


def test_devices_of_one_rank_are_apart() -> None:
    trace = trace_of(spans=[
        kernel("gemm", 0, 10), kernel("gemm", 0, 4, "GPU 1 / stream 7"),
    ])  # fmt: skip

    assert gpu_use(trace).select("device", "busy_ns").rows() == [("GPU 0", 10), ("GPU 1", 4)]


def test_a_profile_of_a_cpu_alone_has_no_device() -> None:
    op = {"track": "CPU / t", "name": "op", "category": "cpu_op", "ts_ns": 0, "dur_ns": 40}

    assert gpu_use(trace_of(spans=[op])).is_empty()
    assert kernel_sums(on_gpu(trace_of(spans=[op]))).is_empty()


def window_ns(trace: Trace, rank: int) -> int:
    """From the first begin to the last end of steps and device work, or of all spans."""
    steps = [
        (row["ts_ns"], row["ts_ns"] + (row["dur_ns"] or 0))
        for row in trace.steps.filter(rank=rank).collect().to_dicts()
    ]
    spans = trace.spans if not steps else on_gpu(trace)
    rows = spans.filter(pl.col("rank") == rank, pl.col("dur_ns").is_not_null()).collect().to_dicts()
    times = steps + [(row["ts_ns"], row["ts_ns"] + row["dur_ns"]) for row in rows]
    return int(max(end for _, end in times) - min(begin for begin, _ in times))


@each_file
def test_gpu_use_of_every_file_is_what_its_spans_come_to_one_by_one(name: str) -> None:
    trace = opened(name)
    by_device: dict[tuple[int, str], dict[str, Intervals]] = defaultdict(lambda: defaultdict(list))
    ran = executed(trace)
    of_kind = kinds_of(ran)
    for row in ran:
        ends = row["ts_ns"], row["ts_ns"] + max(row["dur_ns"], 0)
        device = row["track"].rpartition(" / ")[0] or row["track"]
        by_device[row["rank"], device][of_kind[row["name"], row["category"]]].append(ends)

    told = gpu_use(trace)

    assert told.select("rank", "device").rows() == sorted(by_device)
    for row in told.to_dicts():
        kinds = by_device[row["rank"], row["device"]]
        before: Intervals = []
        for kind, use in zip(KINDS, USES, strict=True):
            assert row[use] == union(before + kinds[kind]) - union(before), kind
            before += kinds[kind]
        assert row["window_ns"] == window_ns(trace, row["rank"])
        assert row["busy_ns"] == union(before)
        assert row["idle_ns"] == row["window_ns"] - union(before)
        assert row["in_collectives_ns"] == union(kinds["communication"])


@each_file
def test_devices_of_every_file_are_as_busy_as_the_minimap_says(name: str) -> None:
    trace = opened(name)

    devices = BusyDevices.of(trace)

    assert gpu_use(trace)["busy_ns"].sum() == int((devices.end - devices.start).sum())


@each_file
def test_kernels_of_every_file_are_counted_and_added_up_as_sql_does(name: str) -> None:
    trace = opened(name)
    asked = trace.sql(
        "select name, count(*) as n, sum(dur_ns) as ns, max(dur_ns) as most from spans"
        " where lower(category) in ('kernel', 'gpu_memcpy', 'gpu_memset', 'memcpy', 'memset',"
        " 'kernel_dispatch', 'memory_copy') and dur_ns is not null group by name"
    )

    told: dict[str, list[int]] = {}
    for row in kernel_sums(on_gpu(trace)).to_dicts():
        num, ns, most = told.get(row["name"], (0, 0, 0))
        told[row["name"]] = [num + row["num"], ns + row["total_ns"], max(most, row["most_ns"])]
    assert told == {name: [num, ns, most] for name, num, ns, most in asked.rows()}
    assert len(asked) == 0 or kernel_sums(on_gpu(trace))["share"].sum() == pytest.approx(1)


@each_file
def test_steps_of_every_file_by_kind_are_those_of_a_plain_count(name: str) -> None:
    trace = opened(name)
    rows = trace.steps.collect().to_dicts()

    told = {row["kind"]: row for row in steps_by_kind(trace).to_dicts()}

    kinds = Counter(row["kind"] or "unknown" for row in rows)
    assert {kind: row["num"] for kind, row in told.items()} == kinds
    for kind, row in told.items():
        own = [each for each in rows if (each["kind"] or "unknown") == kind]
        lasted = [each["dur_ns"] for each in own if each["dur_ns"] is not None]
        busy = [
            (each["gpu_busy_ns"], each["dur_ns"])
            for each in own
            if each["gpu_busy_ns"] is not None and each["dur_ns"] is not None
        ]
        counts = [f"num_{phase}_tokens" for phase in PHASES if kind not in PHASES or kind == phase]
        tokens = [
            (each["num_prefill_tokens"] or 0) + (each["num_decode_tokens"] or 0)
            for each in own
            if all(each[name] is not None for name in counts)
        ]
        assert row["most_ns"] == max(lasted, default=None)
        assert row["mean_ns"] == (pytest.approx(sum(lasted) / len(lasted)) if lasted else None)
        assert row["num_tokens"] == (sum(tokens) if tokens else None)
        assert (row["num_on_gpu"], row["busy_ns"], row["lasted_ns"]) == (
            len(busy), sum(ns for ns, _ in busy), sum(ns for _, ns in busy)
        )  # fmt: skip
    longest = sorted((row["dur_ns"] for row in rows if row["dur_ns"] is not None), reverse=True)
    assert longest_steps(trace, 5)["dur_ns"].to_list() == longest[:5]
