"""A folder of swimlane files, one of its files alone, packed, damaged or cut; and real ones."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepscope.ingest.errors import SchemaMismatch, TraceError, TruncatedTrace
from stepscope.ingest.trace import Trace
from tests.ingest.readers.swimlane.test_reader import (
    RECEIPT,
    UNKEPT,
    Json,
    deps,
    folder,
    records,
)
from tests.ingest.real_files import shared_file

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


def test_a_file_without_core_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="no list of aicore_tasks"):
        Trace.open(folder(tmp_path, records={"aicore_tasks": 5}))


def test_a_file_that_is_not_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TruncatedTrace, match="before anything whole"):
        Trace.open(folder(tmp_path, records="nothing"))


@given(st.integers(1, 1_000), st.sampled_from(["records", "deps", "names"]))
@settings(
    max_examples=30,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
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


def many_tasks() -> tuple[Json, Json]:
    """Return records and dependencies of 30 AIV tasks in a row, of blocks and times by chance."""
    chance = random.Random(15)
    cores, aicpu, tasks, edges, clock = [], [], [], [], 1_000
    for number in range(30):
        task, num_blocks = (1 << 32) + number, chance.randrange(1, 6)
        tasks.append({"task_id": str(task), "kernel_ids": [-1, 7, -1], "block_num": num_blocks})
        if number:
            edge = {"pred": str(task - 1), "succ": str(task), "source": "explicit"}
            edges.append(edge | {"flags": ["wait"]})
        for block in range(num_blocks):
            begin = clock + chance.randrange(50)
            end = begin + chance.randrange(1, 200)
            register = 8 * number + block + 1
            cores.append([4, task, register, begin, end, 3])
            aicpu.append([4, register, begin - 10, end + 5])
            clock = end + 10
    lists = {"aicore_tasks": cores, "aicpu_tasks": aicpu}
    no_phases: Json = {"aicpu_scheduler_phases": [], "aicpu_orchestrator_phases": []}
    return records(**lists, **no_phases), {"tasks": tasks, "edges": edges}


CASES = ("written", "TestBenchmarkBgemm_Case1", "TestSpmdStarvation_Case1")


def swimlane(tmp_path: Path, case: str) -> Path:
    if case != "written":
        return shared_file(f"data/swimlane/{case}")
    cores, tasks = many_tasks()
    return folder(tmp_path, records=cores, deps=tasks)


@pytest.mark.parametrize("case", CASES)
def test_every_block_of_a_task_is_numbered_once(tmp_path: Path, case: str) -> None:
    trace = Trace.open(swimlane(tmp_path, case))

    blocks = trace.core_spans.group_by("task").agg(
        num_found=pl.col("block").n_unique().cast(pl.Int32), last=pl.col("block").max()
    )
    found = trace.tasks.join(blocks, on="task").collect()
    assert not found.is_empty()
    assert (found["num_blocks"] == found["num_found"]).all()
    assert (found["last"] == found["num_blocks"] - 1).all()


@pytest.mark.parametrize("case", CASES)
def test_each_core_s_times_are_the_cycles_of_the_file(tmp_path: Path, case: str) -> None:
    """Times count from the earliest cycle of the file, at the frequency that it names."""
    path = swimlane(tmp_path, case)
    told = json.loads((path / "chip_swimlane_records.json").read_text())
    num_edges = len(json.loads((path / "deps.json").read_text())["edges"])

    trace = Trace.open(path)

    hz = told["metadata"]["clock_freq_hz"]
    spans = trace.core_spans.select("core", "ts_ns", "end_ns").sort("core", "ts_ns").collect()
    cycles = sorted((core, begin, end) for core, _, _, begin, end, *_ in told["aicore_tasks"])
    assert spans["core"].to_list() == [core for core, *_ in cycles]
    lengths_ns = [(end - begin) * 10**9 / hz for _, begin, end in cycles]
    assert all(
        abs(a - b) <= 1 for a, b in zip(spans["end_ns"] - spans["ts_ns"], lengths_ns, strict=True)
    )
    assert trace.num_rows("task_edges") <= num_edges


def test_a_task_that_was_predicated_off_is_skipped(shared_data: Path) -> None:
    folder = shared_data / "swimlane" / "TestPredicatedDispatch_PredicateFalseSkips"

    tasks = Trace.open(folder).tasks.collect()

    assert tasks.filter(pl.col("outcome") == "skipped")["name"].to_list() == ["CLOBBER"]
