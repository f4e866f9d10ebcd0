"""Nsight's exports that are odd, hostile, cut or too large: counted, bounded, never run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stepscope.ingest.errors import TraceError
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.encodings.sqlite import NO_TABLES, VIEWS
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import report_of
from tests.ingest.readers.nsys.files import (
    CALLS,
    KERNELS,
    TABLES,
    exported,
    text,
    thread,
    two_steps,
)
from tests.tiers import slow

ODD: dict[str, tuple[object, object]] = {
    "no begin": (None, 5),
    "text for a time": ("soon", 5),
    "a time that is not whole": (1.5, 5),
    "a time beyond all": (1 << 62, (1 << 62) + 5),
    "an end beyond all": (5, (1 << 63) - 1),
    "bytes for a time": (b"\x01", 5),
}


@slow
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


def test_an_export_without_a_row_of_its_own_is_refused_with_a_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no row of it says what a device or a thread did"):
        Trace.open(exported(tmp_path / "a.sqlite", {}))
