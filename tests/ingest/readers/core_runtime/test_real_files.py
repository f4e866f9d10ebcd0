"""Logs of the core-group runtime, real and written: every line is read or counted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.ingest.readers.core_runtime.decode import MALFORMED, OTHER
from stepscope.ingest.trace import Trace
from tests.ingest.log_files import report_of
from tests.ingest.readers.core_runtime.logs import RUNTIME_LOGS
from tests.ingest.real_files import shared_file

REAL = {
    "livebug_mix_shift_24clusters_1sched": {"core_spans": 1, "tasks": 5, "decisions": 4},
    "mixed_example_debug_dispatch": {"core_spans": 45, "tasks": 25},
    "scope_deadlock_code1": {"tasks": 4, "decisions": 1},
    "stall_S1_qwen2l": {"core_spans": 108, "tasks": 19, "decisions": 12},
}


@pytest.mark.parametrize("name", [*RUNTIME_LOGS, *REAL])
def test_every_line_of_a_log_is_read_or_counted(tmp_path: Path, name: str) -> None:
    file = tmp_path / f"{name}.log"
    if name in RUNTIME_LOGS:
        file.write_text(f"Traceback (most recent call last):\n{RUNTIME_LOGS[name]}")
    else:
        file = shared_file(f"data/logs/{name}.log")
    lines = [line for line in file.read_text().splitlines() if line]

    trace = Trace.open(file)

    report = report_of(trace)
    said = [re.search(r"\[(TIMING|DEBUG|INFO|WARN|ERROR)\] ", line) for line in lines]
    assert report.skipped.get(OTHER, 0) == said.count(None)
    assert sum(report.read.values()) == len(lines) - said.count(None)
    assert MALFORMED not in report.skipped
    assert report.read.get("dispatches", 0) == sum(": Dispatched " in line for line in lines)
    assert report.read.get("host spans", 0) == sum("[STRACE]" in line for line in lines)
    num_rows = REAL.get(name, {})
    assert {table: trace.num_rows(table) for table in num_rows} == num_rows


def test_the_blocks_of_a_real_log_are_those_of_its_swimlane(shared_data: Path) -> None:
    """The same case was recorded as a swimlane in another run, in which more cores were used."""
    log = Trace.open(shared_data / "logs" / "mixed_example_debug_dispatch.log")
    lane = Trace.open(shared_data / "swimlane" / "TestMixedExample_case1")

    found, told = (_parts(trace.core_spans.filter(pl.col("step").fill_null(1) == 1))
                   for trace in (log, lane))  # fmt: skip

    assert found[0] == told[0]
    assert found[1] <= told[1]


def _parts(spans: pl.LazyFrame) -> tuple[list[Any], set[Any]]:
    """Each task's shape and number of parts, and each core's kind and group."""
    tasks = spans.group_by("task").agg(pl.col("shape").first(), parts=pl.len())
    cores = spans.select("core", "core_kind", "group").unique()
    return sorted(tasks.collect().rows()), set(cores.collect().rows())
