"""Swimlane folders of the simpler runtime: tasks, blocks, edges, phases, rings; whole or not."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import SchemaMismatch, TraceError, TruncatedTrace
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


SIZES = {"version": 6, "fatal": False, "dropped": 3, "task_window_max": [4, 4], "heap_max": [9, 9]}
SCOPE = {"ring": 1, "task_window_start": 0, "task_window_end": 1, "tensormap": 5}
SCOPES = "\n".join(map(json.dumps, [SIZES, SCOPE, SCOPE])) + "\n"
EACH = ("chip_swimlane_records.json", "deps.json", "name_map_Case1.json", "scope_stats.jsonl")


@pytest.mark.parametrize("name", EACH)
def test_a_file_of_a_folder_stands_for_all_of_it(tmp_path: Path, name: str) -> None:
    whole = folder(tmp_path, scopes=SCOPES)

    trace, one = Trace.open(whole), Trace.open(whole / name)

    assert one.manifest == trace.manifest
    assert one.core_spans.collect().equals(trace.core_spans.collect())
    assert trace.manifest.config["kernels"] == {"7": "softmax", "8": "qk", "9": "pv"}
    assert trace.manifest.config["rings"] == {"task_window": [4, 4], "heap": [9, 9]}


@pytest.mark.parametrize(
    ("name", "num_rows"),
    zip(
        EACH,
        [{"core_spans": 6, "tasks": 2, "spans": 3, "counters": 3},
         {"tasks": 2, "task_edges": 1}, {}, {"counters": 4}],
        strict=True,
    ),
)  # fmt: skip
def test_a_file_alone_and_renamed_gives_what_it_can(
    tmp_path: Path, name: str, num_rows: dict[str, int]
) -> None:
    alone = tmp_path / "alone" / "thing"
    alone.parent.mkdir()
    shutil.copy(folder(tmp_path, scopes=SCOPES) / name, alone)

    trace = Trace.open(alone)

    assert {table: trace.num_rows(table) for table in trace.manifest.tables} == num_rows
    report = trace.manifest.report
    assert report
    assert sum(" is missing" in note for note in report.notes) >= 2
    assert trace.manifest.closed


@pytest.mark.parametrize("name", EACH)
def test_a_file_of_a_folder_may_be_packed(tmp_path: Path, name: str) -> None:
    whole = folder(tmp_path, scopes=SCOPES)
    alone, packed = tmp_path / "alone" / "thing", tmp_path / "packed" / "thing"
    for file, content in (
        (alone, (whole / name).read_bytes()),
        (packed, gzip.compress((whole / name).read_bytes())),
    ):
        file.parent.mkdir()
        file.write_bytes(content)

    assert Trace.open(packed).manifest == Trace.open(alone).manifest


def test_dependencies_alone_do_not_say_that_a_task_is_left(tmp_path: Path) -> None:
    alone = tmp_path / "graph.json"
    alone.write_text(json.dumps(deps()))

    tasks = Trace.open(alone).tasks.collect()

    assert tasks.select("outcome", "ts_ns").rows() == [(None, None)] * 2
    assert tasks["shape"].to_list() == ["AIV", "MIX"]


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


def test_ring_statistics_alone_are_in_order_and_no_more(tmp_path: Path) -> None:
    alone = tmp_path / "rings"
    alone.write_text(SCOPES)

    trace = Trace.open(alone)

    assert trace.counters.select("ts_ns", "track", "value").collect().rows() == [
        (0, "ring 1", 1.0), (0, "tensor map", 5.0),
        (1000, "ring 1", 1.0), (1000, "tensor map", 5.0),
    ]  # fmt: skip
    assert trace.manifest.tables == {"counters": "ordered"}
    assert trace.manifest.report
    assert "rings: the runtime dropped 3 of its lines" in trace.manifest.report.notes


def test_records_that_make_no_sense_are_left_out_and_counted(tmp_path: Path) -> None:
    odd = records()
    odd["aicore_tasks"] += [[0, 1], "x", [0, 1, 2, 90, 80], [0, 1, 2, True, 80], [9, 3, 1, 5, 6]]
    odd["aicpu_tasks"] += [None, [5, 77, 1, 2]]
    odd["aicpu_scheduler_phases"] += ["x", [{"kind": 7}, 3]]

    trace = Trace.open(folder(tmp_path, records=odd))

    assert trace.num_rows("core_spans") == 7
    assert trace.manifest.report
    assert trace.manifest.report.skipped == {
        "core tasks that are not five numbers in order": 4,
        "dispatches that are not four numbers": 1,
        "dispatches of which the core recorded nothing": 1,
        "scheduler phases without a kind or times in order": 2,
        "dependencies that only keep memory alive": 1,
        RECEIPT: 2,
    }


def test_a_register_that_comes_round_again_is_joined_in_order(tmp_path: Path) -> None:
    twice = records(
        aicore_tasks=[[4, AIV, 1, 100, 200], [4, AIV, 1, 900, 950]],
        aicpu_tasks=[[4, 1, 890, 955], [4, 1, 90, 205]],
    )

    spans = Trace.open(folder(tmp_path, records=twice)).core_spans.collect()

    assert spans.select("dispatch_ns", "ts_ns").rows() == [(1800, 2000), (17_800, 18_000)]


def test_a_file_without_core_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="no list of aicore_tasks"):
        Trace.open(folder(tmp_path, records={"aicore_tasks": 5}))


def test_a_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TruncatedTrace, match="before anything whole"):
        Trace.open(folder(tmp_path, records="nothing"))


@given(st.integers(1, 1_000), st.sampled_from(["records", "deps", "names"]))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_wherever_a_file_is_cut_the_rest_is_read_or_it_is_refused(
    tmp_path: Path, length: int, which: str
) -> None:
    shutil.rmtree(tmp_path / "Case1", ignore_errors=True)
    whole = {"records": records(), "deps": deps(), "names": {"callable_id_to_name": {"7": "x"}}}
    text = json.dumps(whole[which])[:-length] or "{"

    if which == "records" and '"aicore_tasks": [' not in text:
        with pytest.raises(TraceError, match="aicore_tasks"):
            Trace.open(folder(tmp_path, **{which: text}))
        return
    trace = Trace.open(folder(tmp_path, **{which: text}))
    assert trace.core_spans.collect().width
    assert trace.manifest.report
    assert any("cut off" in note for note in trace.manifest.report.notes)
    assert trace.manifest.closed == (which != "records")


def test_the_mixed_example_of_the_runtime(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "swimlane" / "TestMixedExample_case1")

    shapes = dict(trace.tasks.collect()["shape"].value_counts().iter_rows())
    assert shapes == {"MIX": 12, "AIC": 4, "AIV": 4}
    assert trace.num_rows("core_spans") == 36
    assert trace.num_rows("task_edges") == 0
    skews = (
        trace.core_spans.filter(pl.col("shape") == "MIX")
        .group_by("task", "block")
        .agg(skew_ns=pl.col("ts_ns").max() - pl.col("ts_ns").min())
    )
    worst_ms = (pl.col("skew_ns").max() / 1e6).round()
    assert skews.select(pl.len(), worst_ms).collect().row(0) == (12, 33)


def test_the_two_layers_of_a_model(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "swimlane" / "TestQwen2L_StressBatch16Seq3500")

    shapes = dict(trace.tasks.collect()["shape"].value_counts().iter_rows())
    assert shapes == {"AIC": 470, "AIV": 62, "MIX": 2, "DUMMY": 25}
    assert trace.num_rows("task_edges") == 1185
    assert trace.num_rows("core_spans") == 872
    deps = json.loads((shared_data / "swimlane" / trace.name / "deps.json").read_text())
    num_args = sum(len(task["args"]) for task in deps["tasks"]) + len(deps["tensors"])
    assert trace.manifest.report
    assert trace.manifest.report.skipped == {UNKEPT: num_args, RECEIPT: 872}


@pytest.mark.parametrize("case", ["TestBenchmarkBgemm_Case1", "TestSpmdStarvation_Case1"])
def test_every_block_of_a_real_task_is_numbered_once(shared_data: Path, case: str) -> None:
    trace = Trace.open(shared_data / "swimlane" / case)

    blocks = trace.core_spans.group_by("task").agg(
        num_found=pl.col("block").n_unique().cast(pl.Int32), last=pl.col("block").max()
    )
    found = trace.tasks.join(blocks, on="task").collect()
    assert (found["num_blocks"] == found["num_found"]).all()
    assert (found["last"] == found["num_blocks"] - 1).all()


def test_a_task_that_was_predicated_off_is_skipped(shared_data: Path) -> None:
    folder = shared_data / "swimlane" / "TestPredicatedDispatch_PredicateFalseSkips"

    tasks = Trace.open(folder).tasks.collect()

    assert tasks.filter(pl.col("outcome") == "skipped")["name"].to_list() == ["CLOBBER"]
