"""JSON of rocprofv3: what each record says, and what nobody would write."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import open_bytes, rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.rocprofv3.files import (
    counted,
    counting,
    dispatch,
    launches,
    process,
    written,
)
from tests.ingest.real_files import shared_file
from tests.looped import looped
from tests.tiers import slow

Json = dict[str, Any]


def opened(folder: Path, *processes: Json, limits: Limits | None = None) -> Trace:
    file = folder / "results.json"
    file.write_text(json.dumps(written(*processes)))
    return Trace.open(file, limits=limits or Limits())


def test_roctx_ranges_become_steps_by_the_tags_that_torch_s_annotations_have(
    tmp_path: Path,
) -> None:
    columns = ("kind", "ts_ns", "num_prefill_tokens", "cpu_dur_ns", "gpu_busy_ns", "dur_ns")

    assert rows(opened(tmp_path, process()), "steps", *columns) == [
        ("prefill", 1_000, 64, 100, 60, 110),
        ("decode", 1_200, 0, 60, 60, 90),
    ]


def test_kernels_copies_and_calls_have_their_names_tracks_and_steps(tmp_path: Path) -> None:
    told = rows(opened(tmp_path, process()), "spans", "category", "name", "track", "step")

    thread = "process 7 / thread 11"
    assert told == [
        ("kernel_dispatch", "gemm", "GPU 0 / queue 4", 1),
        ("kernel_dispatch", "gemm", "GPU 0 / queue 4", 2),
        ("memory_copy", "MEMORY_COPY_HOST_TO_DEVICE", "GPU 0 / copies", 1),
        ("hip_api", "hipLaunchKernel", thread, 1),
        ("hip_api", "hipMemcpyAsync", thread, 1),
        ("hip_api", "hipLaunchKernel", thread, 2),
        ("marker_api", "execute_context_1(64)_generation_0(0)", thread, 1),
        ("marker_api", "execute_context_0(0)_generation_2(2)", thread, 2),
        ("marker_api", "a mark", thread, 1),
    ]


def test_a_mark_is_an_instant(tmp_path: Path) -> None:
    told = rows(opened(tmp_path, process()), "spans", "name", "form", "dur_ns")

    assert ("a mark", "instant", None) in told


def test_what_else_a_record_says_is_kept_as_arguments(tmp_path: Path) -> None:
    first, _, copy, *_ = rows(opened(tmp_path, process()), "spans", "args")

    grid = {"x": 512, "y": 1, "z": 1}
    assert json.loads(first) == {"correlation": 2, "dispatch_id": 2, "grid_size": grid}
    assert json.loads(copy)["bytes"] == 4096


def test_each_process_is_a_rank(tmp_path: Path) -> None:
    trace = opened(tmp_path, process(7), process(8, since=1_010))

    assert trace.manifest.ranks == (0, 1)
    assert rows(trace, "steps", "rank", "gpu_busy_ns") == [(0, 60), (0, 60), (1, 60), (1, 60)]


def test_names_that_come_behind_the_records_are_found(tmp_path: Path) -> None:
    turned = dict(reversed(process().items()))

    assert rows(opened(tmp_path, turned), "spans", "name")[0] == "gemm"


# -- what nobody would write -------------------------------------------------------------------

ODD: dict[str, Json] = {
    "no time": {"start_timestamp": None},
    "a negative time": {"start_timestamp": -5},
    "a time beyond all": {"start_timestamp": 1 << 62},
    "text": {"start_timestamp": "soon"},
}


@looped("what", ODD)
def test_a_record_with_an_odd_time_is_counted_and_the_others_are_kept(
    tmp_path: Path, what: str
) -> None:
    odd = process()
    odd["buffer_records"]["kernel_dispatch"].append(dispatch(8, 5, 6) | ODD[what])

    report = report_of(opened(tmp_path, odd))

    assert report.skipped == {"kernel_dispatch: records without a time": 1}
    assert report.read["kernel_dispatch"] == 2


def test_numbers_that_name_nothing_are_names_that_are_not_known(tmp_path: Path) -> None:
    odd = process()
    odd["buffer_records"] = {"kernel_dispatch": [dispatch(8, 5, 3, kernel=99)]}
    odd["agents"] = "none"

    trace = opened(tmp_path, odd)

    assert rows(trace, "spans", "name", "track", "dur_ns") == [
        ("KERNEL_DISPATCH_ENQUEUE", "GPU ? / queue 4", 0)
    ]
    assert report_of(trace).repaired == {"end before begin taken as its begin": 1}


@slow
def test_a_file_cut_off_anywhere_keeps_whole_records_or_is_refused_with_a_line(
    tmp_path: Path,
) -> None:
    content = json.dumps(written(process())).encode()
    refused = 0

    for size in range(40, len(content) - 1, 97):
        try:
            trace = open_bytes(tmp_path, content[:size])
        except TraceError as error:
            refused += "cut off" in str(error)
            continue
        assert not trace.manifest.closed
        assert any("cut off after" in note for note in report_of(trace).notes)

    assert refused > 5


def test_more_records_than_the_limit_end_it_with_a_line(tmp_path: Path) -> None:
    many = process()
    many["buffer_records"]["kernel_dispatch"] = [dispatch(n, n, n + 1) for n in range(100)]

    trace = opened(tmp_path, many, limits=Limits(events=10))

    assert trace.num_rows("spans") == 10
    assert "--max events=" in report_of(trace).notes[0]


def test_a_profile_without_a_record_is_refused_with_a_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no record of it says when something ran"):
        opened(tmp_path, {"metadata": {"pid": 7}})


@slow
@pytest.mark.parametrize("origin", ["written", "real"])
def test_every_record_of_a_file_is_in_the_tables(tmp_path: Path, origin: str) -> None:
    file = tmp_path / "results.json.gz"
    if origin == "real":
        file = shared_file("foreign/rocprofv3_908_results.json.gz")
    else:
        file.write_bytes(gzip.compress(json.dumps(written(launches(40))).encode()))
    (said,) = json.loads(gzip.decompress(file.read_bytes()))["rocprofiler-sdk-tool"]
    names = {each["kernel_id"]: each["formatted_kernel_name"] for each in said["kernel_symbols"]}
    gpus = {each["id"]["handle"]: each["gpu_index"] for each in said["agents"]}
    records = [
        (
            each["start_timestamp"],
            each["end_timestamp"] - each["start_timestamp"],
            names[each["dispatch_info"]["kernel_id"]],
            f"GPU {gpus[each['dispatch_info']['agent_id']['handle']]} / queue "
            f"{each['dispatch_info']['queue_id']['handle']}",
        )
        for each in said["buffer_records"]["kernel_dispatch"]
    ]

    trace = Trace.open(file)

    assert report_of(trace).read == {
        kind: len(each) for kind, each in said["buffer_records"].items() if each
    }
    assert report_of(trace).skipped == {}
    told = rows(trace, "spans", "ts_ns", "dur_ns", "name", "track")
    assert Counter(
        (*row[:3], row[3].partition(" #")[0]) for row in told if row[3].startswith("GPU ")
    ) == Counter(records)
    assert trace.num_rows("collectives") == sum("nccl" in name for *_, name, _ in records)


def test_what_a_kernel_counted_stands_where_it_began_summed_over_its_instances(
    tmp_path: Path,
) -> None:
    of_first = counted(2, 1_040, (31, 8.0), (31, 4.0), (32, 7.5))
    trace = opened(tmp_path, counting(process(), of_first, counted(6, None, (31, 1.0))))

    assert rows(trace, "counters", "ts_ns", "track", "name", "value") == [
        (1_040, "GPU 0", "SQ_WAVES", 12.0),
        (1_040, "GPU 0", "GRBM_COUNT", 7.5),
        (1_230, "GPU 0", "SQ_WAVES", 1.0),
    ]
    assert report_of(trace).read["counter_collection"] == 2


def test_counters_that_say_no_value_or_no_time_are_counted_as_skipped(tmp_path: Path) -> None:
    odd = [counted(99, None, (31, 1.0)), counted(2, 1_040), {"records": [{"value": 3}, 7]}]
    trace = opened(tmp_path, counting(process(), *odd))

    skipped = report_of(trace).skipped
    assert skipped["counter_collection: values without a time"] == 1
    assert skipped["counter_collection: records without a value"] == 2
    assert "counters" not in trace.manifest.tables


def test_counters_without_a_name_are_called_by_their_number(tmp_path: Path) -> None:
    trace = opened(tmp_path, counting(process(), counted(2, 1_040, (77, 3.0))))

    assert rows(trace, "counters", "name") == ["counter 77"]


def test_other_records_of_callbacks_are_counted_as_skipped(tmp_path: Path) -> None:
    other = process() | {"callback_records": {"spm_counter_collection": [{"a": 1}, {"a": 2}]}}

    skipped = report_of(opened(tmp_path, other)).skipped
    assert skipped["spm_counter_collection: records that are not read"] == 2
