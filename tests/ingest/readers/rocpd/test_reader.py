"""Databases of rocprofv3 (rocpd): what each row says, by the public schema, and damage."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from stepscope.ingest.errors import TraceError, TruncatedTrace, UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.rocpd.files import database, two_steps
from tests.tiers import slow


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return Trace.open(database(tmp_path / "7_results.db", two_steps()))


def test_roctx_ranges_become_steps_with_what_they_launched(trace: Trace) -> None:
    columns = ("kind", "ts_ns", "num_prefill_tokens", "cpu_dur_ns", "gpu_busy_ns", "dur_ns")

    assert rows(trace, "steps", *columns) == [
        ("prefill", 1_000, 64, 100, 60, 110),
        ("decode", 1_200, 0, 60, 60, 90),
    ]


def test_kernels_copies_calls_and_marks_have_their_names_tracks_and_steps(trace: Trace) -> None:
    told = rows(trace, "spans", "category", "name", "track", "step")

    thread = "process 7 / thread 11"
    assert told == [
        ("kernel_dispatch", "gemm", "GPU 1 / queue 2", 1),
        ("kernel_dispatch", "gemm", "GPU 1 / queue 2", 2),
        ("memory_copy", "MEMORY_COPY_HOST_TO_DEVICE", "GPU 1 / copies", 1),
        ("memory_allocate", "ALLOC REAL", thread, 1),
        ("marker_api", "execute_context_1(64)_generation_0(0)", thread, 1),
        ("hip_api", "hipLaunchKernel", thread, 1),
        ("marker_api", "execute_context_0(0)_generation_2(2)", thread, 2),
        ("hip_api", "hipLaunchKernel", thread, 2),
        ("marker_api", "a mark", thread, 1),
    ]
    assert ("a mark", "instant", None) in rows(trace, "spans", "name", "form", "dur_ns")


def test_sizes_are_kept_as_arguments(trace: Trace) -> None:
    first, _, copy, *_ = rows(trace, "spans", "args")

    assert json.loads(first)["grid_size_x"] == 512
    assert json.loads(copy) == {"correlation": 2, "size": 4096}


def test_a_counter_stands_where_its_kernel_began_summed_over_instances(trace: Trace) -> None:
    columns = ("ts_ns", "track", "name", "unit", "value")

    assert rows(trace, "counters", *columns) == [(1_040, "GPU 1", "SQ_WAVES", None, 12.0)]


def test_a_sample_that_gives_a_counter_its_time_is_no_instant(tmp_path: Path) -> None:
    sampled = two_steps()
    sampled["pmc_event"] = [{"id": 1, "event_id": 8, "pmc_id": 31, "value": 3.5}]
    trace = Trace.open(database(tmp_path / "a.db", sampled))

    assert rows(trace, "counters", "ts_ns", "value") == [(1_050, 3.5)]
    assert "instant" not in rows(trace, "spans", "form")


def test_each_process_of_a_merged_database_is_a_rank(tmp_path: Path) -> None:
    trace = Trace.open(database(tmp_path / "a.db", two_steps(7), two_steps(9, since=1_010)))

    assert trace.manifest.ranks == (0, 1)
    assert rows(trace, "steps", "rank", "gpu_busy_ns") == [(0, 60), (0, 60), (1, 60), (1, 60)]
    assert "rank 1 is process 9" in " ".join(report_of(trace).notes)


def test_every_row_is_counted_and_views_are_none_of_them(trace: Trace) -> None:
    report = report_of(trace)

    told = {"kernel_dispatch": 2, "memory_copy": 1, "memory_allocate": 1, "region": 4, "sample": 1,
            "pmc_event": 2}  # fmt: skip
    assert dict(report.read) == told
    assert not report.skipped


def test_rows_that_say_nothing_and_numbers_that_mean_nothing_are_counted(tmp_path: Path) -> None:
    odd = two_steps()
    odd["kernel_dispatch"] += [odd["kernel_dispatch"][0] | {"id": 50, "start": "soon"}]
    odd["region"] += [odd["region"][1] | {"id": 51, "end": 900, "name_id": 99,
                                               "event_id": None}]  # fmt: skip
    odd["pmc_event"] += [{"id": 3, "event_id": 77, "pmc_id": 31, "value": 1.0},
                         {"id": 4, "event_id": 6, "pmc_id": 99, "value": 1.0}]  # fmt: skip
    trace = Trace.open(database(tmp_path / "a.db", odd))

    report = report_of(trace)
    assert report.skipped["kernel_dispatch: rows without a time"] == 1
    assert report.skipped["counters without a value or a time"] == 1
    assert report.repaired["end before begin taken as its begin"] == 1
    assert "(no name)" in rows(trace, "spans", "name")
    assert "counter 99" in rows(trace, "counters", "name")


def test_it_is_read_compressed(tmp_path: Path) -> None:
    packed = tmp_path / "a.db.gz"
    packed.write_bytes(gzip.compress(database(tmp_path / "a.db", two_steps()).read_bytes()))

    assert rows(Trace.open(packed), "steps", "gpu_busy_ns") == [60, 60]


def test_another_version_of_its_schema_is_refused_by_its_number(tmp_path: Path) -> None:
    other = {"metadata": [{"tag": "schema_version", "value": "4"}]}

    with pytest.raises(TraceError, match="its schema is version 4") as refused:
        Trace.open(database(tmp_path / "a.db", other))
    assert "--output-format" in str(refused.value.todo)


def test_it_ends_at_the_limit_of_events(tmp_path: Path) -> None:
    file = database(tmp_path / "a.db", two_steps())
    trace = Trace.open(file, limits=Limits(events=3))

    assert trace.num_rows("spans") == 3
    assert not trace.manifest.closed


@slow
def test_wherever_it_is_cut_off_it_opens_or_is_refused_in_a_line(tmp_path: Path) -> None:
    many = two_steps()
    many["region"] += [many["region"][1] | {"id": 100 + place} for place in range(2_000)]
    whole = database(tmp_path / "a.db", many).read_bytes()
    told = [cut(tmp_path, whole[:length]) for length in range(100, len(whole), 5_021)]

    assert {type(each) for each in told} <= {Trace, TruncatedTrace, UnknownFormat}
    traces = [each for each in told if isinstance(each, Trace)]
    assert traces
    assert not any(trace.manifest.closed for trace in traces)
    assert not any("\n" in str(each) for each in told if isinstance(each, TraceError))


def cut(folder: Path, content: bytes) -> Trace | TraceError:
    """What becomes of a file."""
    file = folder / "cut.db"
    file.write_bytes(content)
    try:
        return Trace.open(file)
    except TraceError as error:
        return error
