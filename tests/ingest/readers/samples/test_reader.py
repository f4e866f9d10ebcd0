"""Measurements over time in CSV: a counter for each column."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.ingest.errors import TraceError, UnknownFormat
from stepscope.ingest.limits import Limits
from stepscope.ingest.readers.samples.decode import series_of
from stepscope.ingest.trace import Trace
from tests.ingest.kineto_files import rows
from tests.ingest.log_files import open_log, report_of
from tests.ingest.written_files import ORIGINS, from_origin
from tests.looped import looped

SAMPLES = """\
t,prompt_throughput,running,waiting,kv_cache_pct
1.0,3392.0,5,2,13.22
2.5,9045.0,16,0,39.7
"""


def test_each_cell_is_a_sample_of_its_column_under_the_name_that_vllm_s_log_has(
    tmp_path: Path,
) -> None:
    trace = open_log(tmp_path, SAMPLES)

    assert rows(trace, "counters", "ts_ns", "name", "value", "unit") == [
        (1_000_000_000, "Avg prompt throughput", 3392.0, "tokens/s"),
        (1_000_000_000, "Running", 5.0, "reqs"), (1_000_000_000, "Waiting", 2.0, "reqs"),
        (1_000_000_000, "GPU KV cache usage", 13.22, "%"),
        (2_500_000_000, "Avg prompt throughput", 9045.0, "tokens/s"),
        (2_500_000_000, "Running", 16.0, "reqs"), (2_500_000_000, "Waiting", 0.0, "reqs"),
        (2_500_000_000, "GPU KV cache usage", 39.7, "%"),
    ]  # fmt: skip
    assert report_of(trace).read == {"headers": 1, "lines of measurements": 2}


def test_a_column_that_is_not_known_keeps_its_name(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "time,gen_throughput,batch size\n0,1,7\n")

    assert rows(trace, "counters", "name", "unit") == [
        ("Avg generation throughput", "tokens/s"), ("batch size", None),
    ]  # fmt: skip


def test_what_is_no_number_or_has_no_time_is_counted(tmp_path: Path) -> None:
    odd = "x,1,2,3,4\n-1,1,2,3,4\n3,1,2\n3,1,2,3,4,5\n1e300,1,2,3,4\n4,nan,,2,3\n"

    report = report_of(open_log(tmp_path, SAMPLES + odd))

    assert report.read["lines of measurements"] == 3
    assert report.skipped == {
        "lines without a time, or of another number of cells": 5, "cells that are not a number": 2,
    }  # fmt: skip


@looped(
    "header",
    [
        "t,running,waiting",
        "name,throughput",
        "t,throughput {",
        "t,throughput,7",
        "throughput",
        "",
    ],
)
def test_other_csv_is_none_of_ours(header: str) -> None:
    assert series_of(f"{header}\n1,2,3\n".encode()) == []


def test_however_it_was_saved_it_holds_the_same(tmp_path: Path) -> None:
    plain = rows(open_log(tmp_path, SAMPLES), "counters", "ts_ns", "name", "value")

    for saved in (
        gzip.compress(SAMPLES.encode()), b"\xef\xbb\xbf" + SAMPLES.encode(),
        SAMPLES.replace("\n", "\r\n").encode(), SAMPLES.rstrip().encode(),
    ):  # fmt: skip
        found = open_log(tmp_path, saved)
        assert rows(found, "counters", "ts_ns", "name", "value") == plain


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="it holds no measurement"):
        open_log(tmp_path, SAMPLES.partition("\n")[0] + "\n")


def test_lines_that_begin_as_a_header_and_are_prose_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat):
        open_log(tmp_path, "the throughput, as it is told,\n")


def test_up_to_the_limit_samples_are_kept(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(SAMPLES)

    trace = Trace.open(tmp_path / "samples.csv", limits=Limits(rows=5))

    assert trace.num_rows("counters") == 5
    assert "more than 5 rows (--max rows=N raises it)" in report_of(trace).notes[-1]


def test_a_queue_beside_an_empty_cache_is_found_in_them(tmp_path: Path) -> None:
    text = "t,prompt_throughput,running,waiting,kv_cache_pct\n" + "".join(
        f"{second},0,3,9,4.5\n" for second in range(60)
    )

    assert check(open_log(tmp_path, text)).counts["STV016"] == 1


@pytest.mark.parametrize("origin", ORIGINS)
def test_measurements_are_counted_whole_by_the_csv_module(tmp_path: Path, origin: str) -> None:
    file = from_origin(origin, tmp_path, "foreign/llmservingsim_vllm_timeseries.csv")
    with file.open(newline="") as opened:
        header, *told = csv.reader(opened)

    trace = Trace.open(file)

    assert rows(trace, "counters", "ts_ns", "value") == [
        (round(float(line[0]) * 1e9), float(cell)) for line in told for cell in line[1:]
    ]
    assert len(header) == 6
    assert report_of(trace).skipped == {}


def test_two_columns_of_one_name_are_two_counters(tmp_path: Path) -> None:
    trace = open_log(tmp_path, "t,gen_throughput,generation_throughput\n0.5,1,2\n")

    assert rows(trace, "counters", "name", "value") == [
        ("Avg generation throughput", 1.0), ("Avg generation throughput 2", 2.0),
    ]  # fmt: skip
