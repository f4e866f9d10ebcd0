"""Exports of Nsight Systems: what each row says, and what nobody would write."""

from __future__ import annotations

import gzip
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.encodings.sqlite import NO_TABLES, VIEWS
from stepscope.ingest.trace import Trace
from stepscope.ingest.writers.chrome import write_chrome
from stepscope.ingest.writers.perfetto import write_perfetto
from tests.conftest import ROOT
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.nsys_files import TABLES, Rows, exported, text, thread, together, two_steps

MOCK = ROOT.parent / "shared" / "foreign" / "nsys_mock.sqlite"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"


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

ODD: dict[str, tuple[object, object]] = {
    "no begin": (None, 5),
    "text for a time": ("soon", 5),
    "a time that is not whole": (1.5, 5),
    "a time beyond all": (1 << 62, (1 << 62) + 5),
    "an end beyond all": (5, (1 << 63) - 1),
    "bytes for a time": (b"\x01", 5),
}


@pytest.mark.parametrize("what", ODD)
def test_a_kernel_with_an_odd_time_is_counted_and_the_others_are_kept(
    tmp_path: Path, what: str
) -> None:
    odd = two_steps()
    odd[KERNELS].append((*ODD[what], 0, 1, 7, 9, 7 << 24, text("gemm"), text("gemm"), 1, 1, 1))

    trace = Trace.open(exported(tmp_path / "a.sqlite", odd))

    assert report_of(trace).skipped == {f"{KERNELS} without a time": 1}
    assert report_of(trace).read[KERNELS] == 3


def test_an_end_before_its_begin_is_repaired_and_no_end_is_unfinished(tmp_path: Path) -> None:
    odd = two_steps()
    odd[CALLS] += [(500, 400, 0, thread(7, 11), 8, 1, 0), (600, None, 0, thread(7, 11), 9, 1, 0)]

    trace = Trace.open(exported(tmp_path / "a.sqlite", odd))

    assert report_of(trace).repaired == {"end before begin taken as its begin": 1}
    told = rows(trace, "spans", "ts_ns", "form", "dur_ns")
    assert {(500, "slice", 0), (600, "unfinished", None)} <= set(told)


def test_a_number_of_no_text_is_a_name_that_is_not_known(tmp_path: Path) -> None:
    odd = two_steps()
    odd[CALLS] = [(500, 600, 0, thread(7, 11), 8, 12_345, 0)]

    trace = Trace.open(exported(tmp_path / "a.sqlite", odd))

    assert "(no name)" in rows(trace, "spans", "name")


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS start FROM n"
HOSTILE = {
    "a view": f"CREATE VIEW {KERNELS} AS {ENDLESS}",
    "a generated column": f"CREATE TABLE {KERNELS} (start INTEGER, end INTEGER AS "
    "(length(hex(zeroblob(400000000)))))",
    "a trigger": f"CREATE TRIGGER t BEFORE INSERT ON {CALLS} BEGIN SELECT 1; END",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_would_run_when_it_is_read_is_refused_and_the_rest_is_read(
    tmp_path: Path, what: str
) -> None:
    tables = {name: columns for name, columns in TABLES.items()
              if f" {name} " not in HOSTILE[what] or "TRIGGER" in HOSTILE[what]}  # fmt: skip
    told = {name: each for name, each in two_steps().items() if name in tables}
    file = exported(tmp_path / "a.sqlite", told, tables)
    with closing(sqlite3.connect(file)) as opened:
        opened.execute(HOSTILE[what])
        opened.commit()

    report = report_of(Trace.open(file))

    skipped = report.skipped
    assert skipped.get(VIEWS, 0) + skipped.get(NO_TABLES, 0) == 1
    assert report.read[CALLS] == 5


def test_a_column_whose_name_is_no_text_costs_its_table_alone(tmp_path: Path) -> None:
    content = exported(tmp_path / "a.sqlite", two_steps()).read_bytes()
    file = tmp_path / "odd.sqlite"
    file.write_bytes(content.replace(b"copyKind INTEGER", b"copyKin\xff INTEGER"))

    trace = Trace.open(file)

    assert report_of(trace).read[CALLS] == 5


def test_more_rows_than_the_limit_end_a_table_and_say_so(tmp_path: Path) -> None:
    many = two_steps()
    many[CALLS] = [(at, at + 1, 0, thread(7, 11), at, 1, 0) for at in range(500)]
    file = exported(tmp_path / "a.sqlite", many)

    trace = Trace.open(file, limits=Limits(events=100))

    assert trace.num_rows("spans") == 100
    assert not trace.manifest.closed
    assert any("--max events=" in note for note in report_of(trace).notes)


def test_of_a_huge_table_of_texts_the_needed_ones_are_found_and_its_limit_is_told(
    tmp_path: Path,
) -> None:
    rows_of = two_steps() | {
        "StringIds": [(number, f"text {number}") for number in range(100, 900)]
    }
    file = exported(tmp_path / "a.sqlite", rows_of)

    trace = Trace.open(file, limits=Limits(events=200))

    assert "gemm" in rows(trace, "spans", "name")
    assert any(note.startswith("StringIds: more than 200 rows") for note in report_of(trace).notes)


def test_exports_of_several_ranks_in_a_folder_are_one_trace(tmp_path: Path) -> None:
    exported(tmp_path / "rank0.sqlite", two_steps(7))
    exported(tmp_path / "rank1.sqlite", two_steps(9, since=1_050))

    trace = Trace.open(tmp_path)

    assert rows(trace, "steps", "rank", "step", "ts_ns", "gpu_busy_ns") == [
        (0, 1, 1_000, 95), (0, 2, 1_200, 60), (1, 1, 1_050, 95), (1, 2, 1_250, 60),
    ]  # fmt: skip


def test_a_text_longer_than_the_limit_is_cut(tmp_path: Path) -> None:
    long = two_steps()
    long["NVTX_EVENTS"] = [(1, 2, 59, None, "x" * 10_000, thread(7, 11), None, None, 0)]

    trace = Trace.open(exported(tmp_path / "a.sqlite", long), limits=Limits(text=100))

    assert max(map(len, rows(trace, "spans", "name"))) == 100


def test_wherever_the_file_is_cut_it_is_read_in_part_or_refused_with_a_line(
    tmp_path: Path,
) -> None:
    whole = exported(tmp_path / "a.sqlite", two_steps()).read_bytes()
    file = tmp_path / "cut.sqlite"
    refusals = set()

    for size in range(1, len(whole), 4_001):
        file.write_bytes(whole[:size])
        try:
            trace = Trace.open(file)
        except TraceError as error:
            refusals.add(error.what)
            continue
        assert not trace.manifest.closed
        assert any("cut off" in note for note in report_of(trace).notes)

    assert refusals


def test_every_row_of_the_real_export_is_in_the_tables() -> None:
    if not MOCK.exists():
        pytest.skip("the folder of what people also have, ../shared/foreign, is absent")
    uri = f"file:{MOCK}?mode=ro&immutable=1"
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

    trace = Trace.open(MOCK)

    report = report_of(trace)
    assert sum(report.read.values()) + sum(report.skipped.values()) == sum(counts.values())
    assert report.skipped == {"DIAGNOSTIC_EVENT (not read)": 15}
    assert report.read == Counter({table: counts[table] for table in report.read})
    told = rows(trace, "spans", "category", "ts_ns", "dur_ns", "name", "correlation")
    launched = {row[4]: row[1] for row in told if row[0] == "cuda_runtime"}
    assert [
        (ts, ts + dur, name, launched[number])
        for category, ts, dur, name, number in told
        if category == "kernel"
    ] == kernels


def test_an_export_without_a_row_of_its_own_is_refused_with_a_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no row of it says what a device or a thread did"):
        Trace.open(exported(tmp_path / "a.sqlite", {}))
