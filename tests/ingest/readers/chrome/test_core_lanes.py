"""Swimlanes of core groups that were exported to Chrome JSON, read as core groups again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.check.run import check
from stepscope.ingest.trace import Trace
from tests.tiers import slow

Event = dict[str, Any]
GROUPS = 24
AIC0, AIV0, AIV1 = 0, GROUPS, GROUPS + 1
"""The cores of group 0, of 24 groups."""


def name_of(what: str, text: str, pid: int, tid: int = 0) -> Event:
    return {"ph": "M", "name": f"{what}_name", "pid": pid, "tid": tid, "args": {"name": text}}


def slice_of(name: str, pid: int, tid: int, ts: float, dur: float, **args: Any) -> Event:
    return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def opened(folder: Path, events: list[Event], **more: Any) -> Trace:
    file = folder / "merged_swimlane.json"
    file.write_text(json.dumps({"traceEvents": events} | more))
    return Trace.open(file)


def blocks_of(trace: Trace) -> list[tuple[Any, ...]]:
    columns = ("task", "shape", "group", "core", "core_kind", "ts_ns", "end_ns")
    return trace.core_spans.sort("ts_ns", "core").select(columns).collect().rows()


def codes(trace: Trace) -> set[str]:
    return {finding.code for finding in check(trace).findings}


def named_cores(*, has_kernel_lanes: bool = False, group: int = 0) -> list[Event]:
    """A MIX of three parts on a group and an AIV task after it, a lane for each core."""
    cores = {
        0: ("AIC", group),
        1: ("AIV0", GROUPS + 2 * group),
        2: ("AIV1", GROUPS + 2 * group + 1),
    }
    events = [name_of("process", f"block{group}", group)]
    for tid, (lane, core) in cores.items():
        events.append(name_of("thread", f"{lane} (core{core})", group, tid))
        if has_kernel_lanes:
            events.append(name_of("thread", f"{lane}·kernel (core{core})", group, tid + 3))
    at = 3 if has_kernel_lanes else 0
    for tid, name in enumerate(("QK", "SF", "SF")):
        events.append(slice_of(f"claim.won#{7}", group, tid, 1.0, 1.0))
        events.append(slice_of(f"{name}#7", group, tid + at, 3.0 + tid, 10.0))
        events.append(slice_of("commit#7", group, tid + at, 14.0 + tid, 0.5))
    events.append(slice_of("UP#8", group, 1 + at, 20.0, 5.0))
    return events


@pytest.mark.parametrize("has_kernel_lanes", [False, True])
def test_lanes_with_named_cores_are_cores_with_their_numbers_and_groups(
    tmp_path: Path, *, has_kernel_lanes: bool
) -> None:
    trace = opened(tmp_path, named_cores(has_kernel_lanes=has_kernel_lanes))
    assert trace.manifest.producer == "simpler (exported swimlane)"
    assert blocks_of(trace) == [
        (7, "MIX", 0, AIC0, "AIC", 3_000, 13_000),
        (7, "MIX", 0, AIV0, "AIV0", 4_000, 14_000),
        (7, "MIX", 0, AIV1, "AIV1", 5_000, 15_000),
        (8, "AIV", 0, AIV0, "AIV0", 20_000, 25_000),
    ]
    tasks = trace.tasks.sort("task").collect()
    assert tasks.select("task", "name", "shape").rows() == [(7, "QK + SF", "MIX"), (8, "UP", "AIV")]
    types = trace.manifest.config["device"]["core_types"]
    assert types == ["aic"] * GROUPS + ["aiv"] * 2 * GROUPS


def test_cores_of_another_group_are_in_that_group(tmp_path: Path) -> None:
    trace = opened(tmp_path, named_cores(group=5))
    assert {row[2:5] for row in blocks_of(trace)} == {
        (5, 5, "AIC"), (5, GROUPS + 10, "AIV0"), (5, GROUPS + 11, "AIV1"),
    }  # fmt: skip


def test_cores_that_follow_each_other_in_a_group_are_told_apart_from_those_by_kind(
    tmp_path: Path,
) -> None:
    events = [name_of("process", "block1", 1)]
    for tid, (lane, core) in enumerate((("AIC", 3), ("AIV0", 4), ("AIV1", 5))):
        events += [name_of("thread", f"{lane} (core{core})", 1, tid),
                   slice_of(f"QK#{tid}", 1, tid, 1.0, 2.0)]  # fmt: skip
    trace = opened(tmp_path, events)
    assert [row[2:5] for row in blocks_of(trace)] == [(1, 3, "AIC"), (1, 4, "AIV0"), (1, 5, "AIV1")]


def test_cores_that_fit_no_layout_have_the_kind_that_their_lane_says_and_no_group(
    tmp_path: Path,
) -> None:
    events = [name_of("process", "device", 1)]
    for tid, (lane, core) in enumerate((("AIC", 9), ("AIV0", 4), ("AIV1", 7))):
        events += [name_of("thread", f"{lane} (core{core})", 1, tid),
                   slice_of(f"QK#{tid}", 1, tid, 1.0, 2.0)]  # fmt: skip
    trace = opened(tmp_path, events)
    assert [row[2:5] for row in blocks_of(trace)] == [
        (None, 4, "AIV0"), (None, 7, "AIV1"), (None, 9, "AIC"),
    ]  # fmt: skip
    assert "device" not in trace.manifest.config


def exported(worker: str = "Worker View", scheduler: str = "Scheduler View") -> list[Event]:
    """Two groups: a MIX whose AIV0 begins late, then a task that waits for it on core 1.

    Cores are 0 and 1 (AIC), 2 to 5 (AIV); the AIV of the MIX was set up for 2 µs before it began.
    """
    blocks = [  # task, name, core, received, set up, end, dispatched
        (1 << 32, "QK", "AIC", 0, 10.0, 0.0, 30.0, 5.0),
        (1 << 32, "SF", "AIV", 2, 18.0, 2.0, 32.0, 5.0),
        ((1 << 32) + 1, "UP", "AIC", 1, 40.0, 0.0, 45.0, 34.0),
    ]
    events = [name_of("process", worker, 4), name_of("process", scheduler, 3)]
    for task, name, kind, core, received, setup, end, dispatched in blocks:
        tid, label = 10000 + core * 10, f"{name}(r1t{task & 0xFFFF})"
        events += [
            name_of("thread", f"{kind}_{core}", 4, tid),
            name_of("thread", f"{kind}_{core}", 3, tid),
            slice_of(label, 4, tid, received, end - received, local_setup_us=setup, taskId=task),
            slice_of(label, 3, tid, dispatched, end + 1 - dispatched, taskId=task),
        ]
    events += [
        {"ph": "s", "cat": "flow", "name": "dependency", "id": 0, "pid": 4, "tid": 10000,
         "ts": 29.99, "bind_id": 0},
        {"ph": "f", "cat": "flow", "name": "dependency", "id": 0, "pid": 4, "tid": 10010,
         "ts": 40.0, "bp": "e", "bind_id": 2},
    ]  # fmt: skip
    return events


@slow
@pytest.mark.parametrize(
    ("worker", "scheduler"), [("Worker View", "Scheduler View"), ("AICore View", "AICPU View")]
)
def test_views_of_workers_and_scheduler_are_blocks_with_dispatch_and_dependencies(
    tmp_path: Path, worker: str, scheduler: str
) -> None:
    trace = opened(tmp_path, exported(worker, scheduler))
    mix, after = 1 << 32, (1 << 32) + 1
    assert blocks_of(trace) == [
        (mix, "MIX", 0, 0, "AIC", 10_000, 30_000),
        (mix, "MIX", 0, 2, "AIV0", 20_000, 32_000),
        (after, "AIC", 1, 1, "AIC", 40_000, 45_000),
    ]
    assert trace.core_spans.sort("ts_ns").collect()["dispatch_ns"].to_list() == [
        5_000, 5_000, 34_000,
    ]  # fmt: skip
    assert trace.task_edges.select("from_task", "to_task").collect().rows() == [(mix, after)]
    assert trace.manifest.report
    assert not trace.manifest.report.skipped


def test_views_may_name_their_cores_as_well(tmp_path: Path) -> None:
    events = exported()
    for event in events:
        if event.get("name") == "thread_name":
            kind, _, core = event["args"]["name"].partition("_")
            kind = {"AIV": "AIV0"}.get(kind, kind)
            event["args"]["name"] = f"{kind} (core{core})"
    assert blocks_of(opened(tmp_path, events)) == blocks_of(opened(tmp_path, exported()))


def test_blocks_are_no_spans_and_what_else_is_on_their_lanes_is(tmp_path: Path) -> None:
    trace = opened(tmp_path, named_cores(has_kernel_lanes=True))
    left = trace.spans.collect()
    assert set(left["name"]) == {"claim.won#7", "commit#7"}
    assert len(left) == 6
    assert left["args"].to_list() == ["{}"] * 6
    outer = [*exported(), slice_of("dispatch(1)", 2, 30000, 1.0, 90.0, phase="dispatch")]
    assert opened(tmp_path, outer).spans.collect()["name"].to_list() == ["dispatch(1)"]


def test_what_the_scheduler_dispatched_and_no_core_ran_stays_a_span(tmp_path: Path) -> None:
    events = [*exported(), slice_of("QK(r1t9)", 3, 10010, 50.0, 9.0, taskId=(1 << 32) + 9)]
    trace = opened(tmp_path, events)
    assert trace.spans.collect()["name"].to_list() == ["QK(r1t9)"]
    assert trace.num_rows("core_spans") == 3


@slow
def test_rules_of_core_groups_judge_an_exported_swimlane(tmp_path: Path) -> None:
    skewed, booked = opened(tmp_path, exported()), exported()
    assert "COR003" in codes(skewed)
    assert "COR002" not in codes(skewed)
    booked.append(slice_of("X(r1t9)", 4, 10000, 25.0, 30.0, taskId=(1 << 32) + 9))
    assert "COR002" in codes(opened(tmp_path, booked))


def test_blocks_that_name_no_task_are_tasks_of_their_own(tmp_path: Path) -> None:
    events = [name_of("thread", "AIC (core0)", 1, 1), slice_of("gemm", 1, 1, 1.0, 2.0),
              slice_of("gemm", 1, 1, 5.0, 2.0)]  # fmt: skip
    trace = opened(tmp_path, events)
    assert trace.tasks.collect()["name"].to_list() == ["gemm", "gemm"]
    assert trace.manifest.report
    assert trace.manifest.report.inferred["tasks without a number, one for each block"] == 2


def test_lanes_of_other_names_are_no_cores(tmp_path: Path) -> None:
    events = [
        event
        for tid, name in enumerate(("AIC (core)", "AIV2 (core3)", "AICPU_0", "CPU (core0)"))
        for event in (name_of("thread", name, 4, tid), slice_of("x#1", 4, tid, 1.0, 1.0))
    ]
    trace = opened(tmp_path, events)
    assert not trace.has("core_spans")
    assert trace.manifest.producer == "Chrome JSON"


@slow
def test_an_exported_swimlane_that_was_cut_off_gives_the_blocks_before(tmp_path: Path) -> None:
    text = json.dumps({"traceEvents": exported()})
    file = tmp_path / "cut.json"
    found = []
    for end in range(text.index('"X"'), len(text), 41):
        file.write_text(text[:end])
        trace = Trace.open(file)
        assert not trace.manifest.closed
        assert trace.manifest.tables.get("core_spans", "partial") == "partial"
        found.append(trace.num_rows("core_spans"))
    assert found == sorted(found)
    assert found[-1] == 3


@slow
@pytest.mark.parametrize(
    "odd", [{"taskId": None}, {"taskId": -1}, {"taskId": 1 << 70}, {"local_setup_us": "x"},
            {"local_setup_us": 1e12}]
)  # fmt: skip
def test_odd_arguments_of_a_block_leave_it_a_block(tmp_path: Path, odd: dict[str, Any]) -> None:
    events = exported()
    for event in events:
        event["args"] = event.get("args", {}) | odd if event["ph"] == "X" else event.get("args", {})
    trace = opened(tmp_path, events)
    assert trace.num_rows("core_spans") == 3
    assert trace.core_spans.filter(pl.col("end_ns") < pl.col("ts_ns")).collect().is_empty()
