"""Swimlane folders of the simpler runtime: tasks, blocks, edges, phases, rings; whole or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.ingest.trace import Trace

Json = dict[str, Any]
UNKEPT = "tensors and arguments of tasks (no table has a column for them)"
RECEIPT = "cycles from receipt to start (no table has a column for them)"
MIX, AIV = 1 << 32, 2
DEVICE = {
    "clock_freq_hz": 50_000_000,
    "num_cores": 6,
    "core_types": ["aic", "aic", "aiv", "aiv", "aiv", "aiv"],
    "core_to_thread": [0, 1, 0, 0, 1, 1],
}
DISPATCH = {"kind": "dispatch", "start_cycles": 85, "end_cycles": 96, "shared_at_start": [0, 1, 2]}


def records(**more: Any) -> Json:
    """Two groups: an AIV task of two blocks on group 1, then a MIX of two blocks on both."""
    return {
        "metadata": DEVICE,
        "aicore_tasks": [
            [4, AIV, 1, 100, 200, 3],
            [4, AIV, 2, 210, 300, 3],
            [0, MIX, 1, 400, 500],
            [2, MIX, 1, 410, 500],
            [1, MIX, 1, 405, 500],
            [4, MIX, 3, 407, 500],
        ],
        "aicpu_tasks": [
            [4, 1, 90, 205], [4, 2, 95, 305], [4, 3, 350, 505],
            [0, 1, 340, 505], [2, 1, 340, 505], [1, 1, 350, 505],
        ],
        "aicpu_scheduler_phases": [[DISPATCH]],
        "aicpu_orchestrator_phases": [
            [
                {"task_id": AIV, "start_cycles": 10, "end_cycles": 20},
                {"task_id": MIX, "start_cycles": 20, "end_cycles": 30},
            ]
        ],
    } | more  # fmt: skip


def deps(**more: Any) -> Json:
    return {
        "tasks": [
            {"task_id": str(AIV), "kernel_ids": [-1, 7, -1], "block_num": 2},
            {"task_id": str(MIX), "kernel_ids": [8, 9, -1], "block_num": 2},
        ],
        "edges": [
            {"pred": str(AIV), "succ": str(MIX), "source": "explicit", "flags": ["wait"]},
            {"pred": str(AIV), "succ": str(MIX), "source": "creator", "flags": ["retain"]},
        ],
    } | more


def folder(tmp_path: Path, **files: Any) -> Path:
    """A swimlane folder; a file that is None is left out."""
    out = tmp_path / "Case1"
    out.mkdir(exist_ok=True)
    names = {"callable_id_to_name": {"7": "softmax", "8": "qk", "9": "pv"}}
    told = {"records": records(), "deps": deps(), "names": names, "scopes": None, **files}
    called = {
        "records": "chip_swimlane_records.json", "deps": "deps.json",
        "names": "name_map_Case1.json", "scopes": "scope_stats.jsonl",
    }  # fmt: skip
    for name, content in told.items():
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content)
            (out / called[name]).write_text(text)
    return out


def test_a_block_has_its_shape_group_thread_and_times_in_nanoseconds(tmp_path: Path) -> None:
    trace = Trace.open(folder(tmp_path))

    rows = trace.core_spans.sort("ts_ns", "core").collect()
    columns = ["task", "block", "shape", "group", "core_kind", "thread", "dispatch_ns", "ts_ns"]
    assert rows.select(columns).rows() == [
        (AIV, 0, "AIV", 1, "AIV0", 1, 1800, 2000),
        (AIV, 1, "AIV", 1, "AIV0", 1, 1900, 4200),
        (MIX, 0, "MIX", 0, "AIC", 0, 6800, 8000),
        (MIX, 1, "MIX", 1, "AIC", 1, 7000, 8100),
        (MIX, 1, "MIX", 1, "AIV0", 1, 7000, 8140),
        (MIX, 0, "MIX", 0, "AIV0", 0, 6800, 8200),
    ]


def test_a_task_is_ready_when_it_was_submitted_and_all_before_it_ended(tmp_path: Path) -> None:
    tasks = Trace.open(folder(tmp_path)).tasks.collect()

    columns = ["name", "shape", "core_mask", "num_blocks", "ready_ns", "retired_ns", "outcome"]
    assert tasks.select(columns).rows() == [
        ("softmax", "AIV", 2, 2, 400, 6000, "run"),
        ("qk + pv", "MIX", 3, 2, 6000, 10_000, "run"),
    ]


def test_an_edge_that_only_keeps_memory_alive_orders_nothing(tmp_path: Path) -> None:
    trace = Trace.open(folder(tmp_path))

    assert trace.task_edges.select("from_task", "to_task", "source").collect().rows() == [
        (AIV, MIX, "explicit")
    ]
    assert trace.manifest.report
    assert trace.manifest.report.skipped == {
        "dependencies that only keep memory alive": 1,
        RECEIPT: 2,
    }


def test_phases_are_slices_and_queue_lengths_are_counters(tmp_path: Path) -> None:
    trace = Trace.open(folder(tmp_path))

    assert trace.spans.select("track", "name", "ts_ns", "dur_ns").collect().rows() == [
        ("AICPU / scheduler 0", "dispatch", 1700, 220),
        ("AICPU / orchestrator 0", "submit softmax", 200, 200),
        ("AICPU / orchestrator 0", "submit qk + pv", 400, 200),
    ]
    assert trace.counters.select("name", "value").collect().rows() == [
        ("ready AIC", 0.0), ("ready AIV", 1.0), ("ready MIX", 2.0),
    ]  # fmt: skip


def test_ring_statistics_are_placed_by_the_tasks_that_their_ring_was_given(tmp_path: Path) -> None:
    lines = [
        {"version": 6, "task_window_max": [4, 4]},
        {"ring": 1, "task_window_start": 0, "task_window_end": 0, "heap_start": 0, "heap_end": 64},
        {"ring": 1, "task_window_start": 0, "task_window_end": 1, "heap_start": 64, "heap_end": 64},
        {"ring": "no"},
    ]

    trace = Trace.open(folder(tmp_path, scopes="\n".join(map(json.dumps, lines)) + "\n{"))

    rings = trace.counters.filter(pl.col("track") == "ring 1")
    assert rings.select("ts_ns", "name", "value").collect().rows() == [
        (200, "task_window", 0.0), (200, "heap", 64.0),
        (600, "task_window", 1.0), (600, "heap", 0.0),
    ]  # fmt: skip
    assert trace.manifest.report
    assert trace.manifest.report.skipped["ring statistics that say no ring or no tasks"] == 2


def test_the_records_alone_are_enough(tmp_path: Path) -> None:
    alone = folder(tmp_path, deps=None, names=None) / "chip_swimlane_records.json"

    trace = Trace.open(alone)

    shapes = dict(trace.core_spans.select("task", "shape").unique().collect().iter_rows())
    assert shapes == {AIV: "AIV", MIX: "MIX"}
    assert trace.manifest.report
    assert "deps.json is missing" in trace.manifest.report.notes
    assert trace.manifest.report.inferred["shapes of tasks from the cores that they ran on"] == 2


def test_without_dependencies_it_is_not_known_when_a_task_was_ready(tmp_path: Path) -> None:
    trace = Trace.open(folder(tmp_path, deps=None))

    assert trace.tasks.select("ready_ns", "num_blocks").collect().rows() == [(None, None)] * 2
    assert trace.core_spans.select(pl.col("ready_ns").null_count()).collect().item() == 6


def test_scopes_of_the_orchestration_are_slices_by_their_source(tmp_path: Path) -> None:
    phases = [("begin", 0, "(unknown):0"), ("begin", 1, "orch.cpp:7"), ("end", 1, "orch.cpp:7")]
    lines = [
        {"site": site, "phase": phase, "depth": depth, "ring": 1, "task_window_end": number}
        for number, (phase, depth, site) in enumerate(phases)
    ]

    trace = Trace.open(folder(tmp_path, scopes="\n".join(map(json.dumps, lines))))

    scopes = trace.spans.filter(category="scope").select("track", "name", "ts_ns", "dur_ns", "args")
    assert scopes.collect().rows() == [
        ("AICPU / scopes", "orch.cpp:7", 600, 0, '{"ring": 1, "depth": 1}')
    ]


def test_what_else_a_phase_says_is_in_its_arguments(tmp_path: Path) -> None:
    told = DISPATCH | {"loop_iter": 14, "task_id": str(MIX)}

    trace = Trace.open(folder(tmp_path, records=records(aicpu_scheduler_phases=[[told]])))

    args = trace.spans.filter(category="dispatch").select("args").collect().item()
    assert json.loads(args) == {"task": MIX, "shared_at_start": [0, 1, 2], "loop_iter": 14}


def test_a_register_that_comes_round_again_is_joined_in_order(tmp_path: Path) -> None:
    twice = records(
        aicore_tasks=[[4, AIV, 1, 100, 200], [4, AIV, 1, 900, 950]],
        aicpu_tasks=[[4, 1, 890, 955], [4, 1, 90, 205]],
    )

    spans = Trace.open(folder(tmp_path, records=twice)).core_spans.collect()

    assert spans.select("dispatch_ns", "ts_ns").rows() == [(1800, 2000), (17_800, 18_000)]


@pytest.mark.parametrize("queues", [[1, 2, 3, "x"], [1, 2, 3, 2**80]])
def test_more_queues_than_there_are_shapes_are_left_out(tmp_path: Path, queues: list[Any]) -> None:
    phase = DISPATCH | {"shared_at_start": queues}

    trace = Trace.open(folder(tmp_path, records=records(aicpu_scheduler_phases=[[phase]])))

    assert trace.counters.collect()["value"].to_list() == [1.0, 2.0, 3.0]


def test_a_thread_that_no_column_can_hold_is_not_known(tmp_path: Path) -> None:
    device = DEVICE | {"core_to_thread": [5_000_000_000] * 6}

    trace = Trace.open(folder(tmp_path, records=records(metadata=device)))

    assert set(trace.core_spans.collect()["thread"]) == {None}


def test_half_a_letter_is_replaced_in_names_and_in_what_is_said_of_the_device(
    tmp_path: Path,
) -> None:
    device = DEVICE | {"core_types": ["\ud800"] * 6}
    phase = DISPATCH | {"kind": "poll \ud800"}

    trace = Trace.open(
        folder(tmp_path, records=records(metadata=device, aicpu_scheduler_phases=[[phase]]))
    )

    assert "poll \ufffd" in trace.spans.collect()["category"].to_list()
    assert trace.manifest.config["device"]["core_types"] == ["\ufffd"] * 6
