"""STV022: an engine with requests stops reporting, and its log goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.stv.stv022_reports_stopped import ReportsStopped
from tests.analyzers.conftest import Record
from tests.analyzers.engine_reports import log_of, sglang, vllm
from tests.looped import looped


def health(second: int) -> str:
    at = f"16:{second // 60:02}:{second % 60:02}"
    return f'[2026-09-13 {at}] INFO:     127.0.0.1:56568 - "GET /health HTTP/1.1" 200 OK'


UNTIMED = '(APIServer pid=1) INFO:     10.0.0.1:5088 - "GET /health HTTP/1.1" 200 OK'
SERVED = [vllm(10 * n, 4, 0, 30.0) for n in range(6)]
QUEUED = [sglang(2 * n, 24, n, 0.9) for n in range(30)]


def test_a_queue_of_batches_that_nobody_serves_any_more_is_found(tmp_path: Path) -> None:
    lines = [*QUEUED, *(health(60 * n) for n in range(2, 15))]

    (found,) = ReportsStopped().check(log_of(tmp_path, *lines))

    assert found.message == (
        "no report follows for 782.0 s (13 other lines): the last one says that 24 requests run "
        "and 29 wait"
    )
    assert found.end_ns is not None
    assert found.ts_ns is not None
    assert found.end_ns - found.ts_ns == 782_000_000_000


def test_lines_without_a_time_are_counted(tmp_path: Path) -> None:
    (found,) = ReportsStopped().check(log_of(tmp_path, *SERVED, *[UNTIMED] * 60))

    assert "60 other lines" in found.message


@looped(
    "lines",
    [
        pytest.param(SERVED, id="the log ends with a report"),
        pytest.param([*SERVED, *[UNTIMED] * 20], id="few lines follow"),
        pytest.param([*SERVED, vllm(60, 0, 0, 0.0), *[UNTIMED] * 90], id="nothing runs"),
        pytest.param([*QUEUED[:1], *(health(60 * n) for n in range(2, 15))], id="no queue"),
        pytest.param([*QUEUED, *(health(60 + n) for n in range(30))], id="for half a minute"),
        pytest.param([*SERVED, "INFO 03-11 06:01:00 shutdown triggered", *[UNTIMED] * 90],
                     id="somebody stopped it"),
        pytest.param([*SERVED, *[UNTIMED] * 90, vllm(60, 4, 0, 30.0)], id="reports go on"),
    ],
)  # fmt: skip
def test_logs_that_end_otherwise_are_clean(tmp_path: Path, lines: list[str]) -> None:
    result = check(log_of(tmp_path, *lines), (ReportsStopped(),))

    assert (result.findings, result.not_applicable) == ((), ())


def test_recorded_steps_are_no_reports_of_a_log(record: Record) -> None:
    assert check(record("fcfs-preemption"), (ReportsStopped(),)).not_applicable == ("STV022",)
