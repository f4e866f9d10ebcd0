"""What an export of Nsight Systems becomes: steps, kernels, calls, ranks and counters."""

from __future__ import annotations

import gzip
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.readers.nsys.reader import NO_KERNELS
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.chrome import write_chrome
from stepscope.ingest.writers.perfetto import write_perfetto
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.nsys.files import (
    CALLS,
    TABLES,
    Rows,
    exported,
    launches,
    together,
    two_steps,
)
from tests.ingest.real_files import shared_file


@pytest.fixture
def made(tmp_path: Path) -> Trace:
    return Trace.open(exported(tmp_path / "report.sqlite", two_steps()))


def test_nvtx_ranges_become_steps_by_the_tags_that_torch_s_annotations_have(made: Trace) -> None:
    columns = ("step", "kind", "ts_ns", "num_prefill_tokens", "num_decode_reqs", "cpu_dur_ns")

    assert rows(made, "steps", *columns) == [
        (1, "prefill", 1_000, 64, 0, 100),
        (2, "decode", 1_200, 0, 2, 60),
    ]


def test_kernels_copies_and_fills_belong_to_the_step_that_launched_them(made: Trace) -> None:
    told = rows(made, "spans", "category", "name", "step")
    on_device = {"kernel", "gpu_memcpy", "gpu_memset"}

    assert [row for row in told if row[0] in on_device] == [
        ("kernel", "gemm", 1),
        ("kernel", "attention", 1),
        ("kernel", "gemm", 2),
        ("gpu_memcpy", "Memcpy HtoD", 1),
        ("gpu_memset", "Memset", 1),
    ]


def test_the_gpu_is_busy_where_any_kernel_of_a_step_runs(made: Trace) -> None:
    """By hand: 1040 to 1120 without a gap, 10 of the copy, 5 of the fill; and 1230 to 1290."""
    columns = ("gpu_ts_ns", "gpu_dur_ns", "gpu_busy_ns", "dur_ns")

    assert rows(made, "steps", *columns) == [(1_040, 115, 95, 155), (1_230, 60, 60, 90)]


def test_calls_have_the_names_and_categories_that_torch_gives_them(made: Trace) -> None:
    told = rows(made, "spans", "category", "name", "track", "correlation")

    assert [row for row in told if row[0].startswith("cuda")] == [
        ("cuda_runtime", "cudaLaunchKernel", "python 7 / python 11", 1),
        ("cuda_driver", "cuLaunchKernel", "python 7 / python 11", 2),
        ("cuda_runtime", "cudaMemcpyAsync", "python 7 / python 11", 3),
        ("cuda_runtime", "cudaMemsetAsync", "python 7 / python 11", 4),
        ("cuda_runtime", "cudaLaunchKernel", "python 7 / python 11", 5),
    ]


def test_a_mark_is_an_instant_and_a_range_that_ends_on_another_thread_may_overlap(
    made: Trace,
) -> None:
    told = {row[0]: row[1:] for row in rows(made, "spans", "name", "form", "dur_ns", "args")}

    assert told["a mark"] == ("instant", None, '{"domain": "engine"}')
    assert told["elsewhere"] == ("async", 290, '{"domain": "engine"}')


def test_each_process_that_used_a_device_is_a_rank(tmp_path: Path) -> None:
    both = together(two_steps(pid=7), two_steps(pid=9, since=1_020))

    trace = Trace.open(exported(tmp_path / "report.sqlite", both))

    assert trace.manifest.ranks == (0, 1)
    assert rows(trace, "steps", "rank", "step", "gpu_busy_ns") == [
        (0, 1, 95), (0, 2, 60), (1, 1, 95), (1, 2, 60),
    ]  # fmt: skip
    assert trace.manifest.config["processes"] == {"0": "python 7", "1": "python 9"}


def test_metrics_that_were_sampled_are_counters(tmp_path: Path) -> None:
    sampled: Rows = {
        "GPU_METRICS": [(1_000, 256, 4, 50), (1_100, 256, 5, 7), (None, 256, 4, 1)],
        "TARGET_INFO_GPU_METRICS": [(256, 4, "SMs Active [%]")],
    }

    trace = Trace.open(exported(tmp_path / "a.sqlite", together(sampled, two_steps())))

    assert rows(trace, "counters", "ts_ns", "name", "value") == [
        (1_000, "SMs Active [%]", 50.0),
        (1_100, "metric 5", 7.0),
    ]
    assert report_of(trace).skipped["GPU_METRICS without a time or value"] == 1


DIAGNOSTICS = {
    "DIAGNOSTIC_EVENT": "timestamp INTEGER, timestampType INTEGER, source INTEGER,"
    " severity INTEGER, text TEXT, globalPid INTEGER"
}
MESSAGES: Rows = {
    "DIAGNOSTIC_EVENT": [
        (0, 1, 3, 1, "Profiling has started.", 1),
        (5, 2, 3, 1, "Number of CUDA events collected: \t0.", 1),
        (6, 1, 1, 2, "CUDA tracing is unsupported\non this device.", 1),
        (6, 1, 1, 2, "CUDA tracing is unsupported\non this device.", 1),
        (7, 1, 1, 3, "CUPTI could not be initialized.", 1),
        (8, 1, 1, 1, None, 1),
    ]
}


def without_kernels() -> Rows:
    return together({CALLS: two_steps()[CALLS]}, MESSAGES)


def test_a_report_without_kernels_says_what_nsight_systems_wrote_about_it(tmp_path: Path) -> None:
    trace = Trace.open(exported(tmp_path / "a.sqlite", without_kernels(), TABLES | DIAGNOSTICS))

    assert report_of(trace).notes[:5] == (
        NO_KERNELS,
        "Nsight Systems (error): CUPTI could not be initialized.",
        "Nsight Systems (warning): CUDA tracing is unsupported on this device.",
        "Nsight Systems (information): Profiling has started.",
        "Nsight Systems (information): Number of CUDA events collected: 0.",
    )


def test_a_report_of_nothing_is_refused_with_the_first_messages(tmp_path: Path) -> None:
    file = exported(tmp_path / "a.sqlite", MESSAGES, TABLES | DIAGNOSTICS)

    with pytest.raises(TraceError, match="CUPTI could not be initialized") as refused:
        Trace.open(file)

    assert "\n" not in str(refused.value)


def test_a_report_with_kernels_does_not_repeat_the_messages(tmp_path: Path) -> None:
    rows = together(two_steps(), MESSAGES)

    notes = report_of(Trace.open(exported(tmp_path / "a.sqlite", rows, TABLES | DIAGNOSTICS))).notes

    assert not any("Nsight Systems" in note for note in notes)


def test_a_report_of_many_messages_counts_the_rest(tmp_path: Path) -> None:
    many = [(n, 1, 1, 1, f"message {n} {'x' * 999}", 1) for n in range(20)]
    rows = together({CALLS: two_steps()[CALLS]}, {"DIAGNOSTIC_EVENT": many})

    notes = report_of(Trace.open(exported(tmp_path / "a.sqlite", rows, TABLES | DIAGNOSTICS))).notes

    assert "Nsight Systems: 8 more messages" in notes
    assert max(map(len, notes)) < 300


def test_every_row_of_every_table_with_times_is_read_or_counted(tmp_path: Path) -> None:
    extra = two_steps() | {"SCHED_EVENTS": [(1, 2, 3), (2, 3, 4)]}

    report = report_of(Trace.open(exported(tmp_path / "a.sqlite", extra)))

    said = {table: len(each) for table, each in extra.items() if table not in NAMING}
    assert sum(report.read.values()) + sum(report.skipped.values()) == sum(said.values())
    assert report.skipped == {"SCHED_EVENTS (not read)": 2}


NAMING = ("PROCESSES", "ThreadNames")


def test_times_count_from_the_start_of_the_session(made: Trace) -> None:
    assert made.manifest.clock.epoch_ns == 17 * 10**17


@pytest.mark.parametrize("write", [write_chrome, write_perfetto])
def test_what_was_launched_is_still_told_after_it_was_converted(
    tmp_path: Path, made: Trace, write: Callable[[Trace, Path], None]
) -> None:
    write(made, tmp_path / "copy")

    columns = ("kind", "gpu_busy_ns", "gpu_dur_ns")
    assert rows(Trace.open(tmp_path / "copy"), "steps", *columns) == rows(made, "steps", *columns)


def test_the_same_is_read_of_a_compressed_export(tmp_path: Path, made: Trace) -> None:
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress((tmp_path / "report.sqlite").read_bytes()))

    assert rows(Trace.open(packed), "spans", "name") == rows(made, "spans", "name")


# -- what nobody would write -------------------------------------------------------------------


def test_exports_of_several_ranks_in_a_folder_are_one_trace(tmp_path: Path) -> None:
    exported(tmp_path / "rank0.sqlite", two_steps(7))
    exported(tmp_path / "rank1.sqlite", two_steps(9, since=1_050))

    trace = Trace.open(tmp_path)

    assert rows(trace, "steps", "rank", "step", "ts_ns", "gpu_busy_ns") == [
        (0, 1, 1_000, 95), (0, 2, 1_200, 60), (1, 1, 1_050, 95), (1, 2, 1_250, 60),
    ]  # fmt: skip


@pytest.mark.parametrize("origin", ["written", "real"])
def test_every_row_of_an_export_is_in_the_tables(tmp_path: Path, origin: str) -> None:
    file = tmp_path / "a.sqlite"
    if origin == "real":
        file = shared_file("foreign/nsys_mock.sqlite")
    else:
        exported(file, launches(40))
    uri = f"file:{file}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as opened:
        listed = opened.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        timed = {
            name for (name,) in listed
            if {"start", "timestamp"}
            & {each[1] for each in opened.execute(f"PRAGMA table_info({name})")}
        }  # fmt: skip
        counts = {
            name: len(opened.execute(" ".join(("SELECT 1 FROM", name))).fetchall())
            for name in timed
        }
        kernels = opened.execute(
            "SELECT k.start, k.end, s.value, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k"
            " JOIN StringIds s ON s.id = k.demangledName"
            " JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)"
        ).fetchall()

    trace = Trace.open(file)

    report = report_of(trace)
    assert sum(report.read.values()) + sum(report.skipped.values()) == sum(counts.values())
    assert report.skipped == ({} if origin == "written" else {"DIAGNOSTIC_EVENT (not read)": 15})
    assert report.read == Counter({table: counts[table] for table in report.read})
    told = rows(trace, "spans", "category", "ts_ns", "dur_ns", "name", "correlation")
    launched = {row[4]: row[1] for row in told if row[0] == "cuda_runtime"}
    assert [
        (ts, ts + dur, name, launched[number])
        for category, ts, dur, name, number in told
        if category == "kernel"
    ] == kernels
