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
START = "(APIServer pid=90) INFO 03-11 06:06:01 [api_server.py:1896] vLLM API server version 0.11.0"
LOADS = [f"(EngineCore_DP0 pid=91) INFO 03-11 06:{n:02}:00 Loading weights" for n in range(7, 17)]
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


def two(first: range, second: range) -> list[str]:
    lines = [(n, 0, vllm(10 * n, 20, 0, 30.0)) for n in first]
    lines += [(n, 1, vllm(10 * n, 16, 0, 25.0, engine=1)) for n in second]
    return [line for _, _, line in sorted(lines)]


def test_a_rank_that_stops_while_another_reports_on_is_found(tmp_path: Path) -> None:
    (found,) = ReportsStopped().check(log_of(tmp_path, *two(range(40), range(10))))

    assert found.rank == 1
    assert found.message == (
        "rank 1 reports nothing for 300.0 s, in which 30 reports of rank 0 came: its last one says "
        "that 16 requests run"
    )


def test_a_busy_rank_counts_where_another_that_drained_reported_last(tmp_path: Path) -> None:
    lines = [*SERVED, vllm(50, 0, 0, 0.0, engine=1), *[UNTIMED] * 60]

    (found,) = ReportsStopped().check(log_of(tmp_path, *lines))

    assert found.rank == 0


def test_a_hang_before_another_server_starts_is_found(tmp_path: Path) -> None:
    lines = [*SERVED, "INFO 03-11 06:06:00 a line", START, *LOADS]

    (found,) = ReportsStopped().check(log_of(tmp_path, *lines))

    assert found.message.startswith("no report follows for 310.0 s (1 other line)")


def test_a_start_without_a_word_before_is_a_note(tmp_path: Path) -> None:
    report = log_of(tmp_path, *SERVED, START, *LOADS).manifest.report

    assert report is not None
    assert any("a server starts after the last report" in note for note in report.notes)


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
        pytest.param([*SERVED, START, *LOADS], id="another server starts"),
        pytest.param(two(range(14), range(10)), id="a rank is a little late"),
        pytest.param([*two(range(10), range(10)), vllm(100, 0, 0, 0.0, engine=1),
                      *two(range(10, 40), range(0))], id="a rank has drained"),
        pytest.param([*two(range(10), range(10)), START, *two(range(40, 90), range(0))],
                     id="a smaller server starts"),
        pytest.param([*(f"a-1  | {vllm(10 * n, 4, 0, 30.0)}" for n in range(9)),
                      *(f"b-1  | {vllm(10 * n, 4, 0, 30.0)}" for n in range(9, 40))],
                     id="another server's reports"),
        pytest.param([*SERVED, *[UNTIMED] * 90, vllm(60, 4, 0, 30.0)], id="reports go on"),
    ],
)  # fmt: skip
def test_logs_that_end_otherwise_are_clean(tmp_path: Path, lines: list[str]) -> None:
    result = check(log_of(tmp_path, *lines), (ReportsStopped(),))

    assert (result.findings, result.not_applicable) == ((), ())


def test_recorded_steps_are_no_reports_of_a_log(record: Record) -> None:
    assert check(record("fcfs-preemption"), (ReportsStopped(),)).not_applicable == ("STV022",)
