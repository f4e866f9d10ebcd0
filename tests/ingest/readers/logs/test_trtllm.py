"""Logs of ATOM and of TensorRT-LLM, which tell of iterations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ingest.kineto_files import rows
from tests.ingest.log_files import (
    ATOM,
    COUNTS,
    STATISTICS,
    TRTLLM,
    at,
    open_log,
    report_of,
)


def test_batches_of_atom_are_steps_past_midnight(tmp_path: Path) -> None:
    trace = open_log(tmp_path, ATOM)

    assert rows(trace, "steps", *COUNTS) == [
        (1, "prefill", 2, 30, 0, 0),
        (2, "prefill", 1, 12, 0, 0),
        (3, "mixed", 2, 1024, 30, 30),
        (4, "prefill", 2, 96, 0, 0),
    ]
    times = rows(trace, "steps", "ts_ns")
    assert [(ts_ns - times[0]) // 10**9 for ts_ns in times] == [0, 2, 3, 3]


def test_requests_of_atom_are_rows_where_each_one_s_tokens_are_told(tmp_path: Path) -> None:
    trace = open_log(tmp_path, ATOM)

    columns = ("step", "row", "request", "phase", "num_tokens", "num_computed", "num_cached")
    assert rows(trace, "batch_rows", *columns) == [
        (1, 0, "1", "prefill", 10, 0, 0),
        (1, 1, "2", "prefill", 20, 16, 16),
        (2, 0, "3", "prefill", 12, None, None),
    ]
    assert report_of(trace).skipped == {"ATOM lists of requests without the tokens of each": 1}


def test_tokens_done_before_are_not_taken_for_cached_ones(tmp_path: Path) -> None:
    line = (
        "[atom 12:00:43] Scheduled prefill batch: 1 reqs, 16384 new tokens (done: [16384], "
        "new: [16384]), req_ids: (490,)\n"
    )

    trace = open_log(tmp_path, line)

    assert rows(trace, "batch_rows", "num_computed", "num_cached") == [(16384, None)]


def test_both_layouts_of_the_iteration_log_are_steps(tmp_path: Path) -> None:
    trace = open_log(tmp_path, TRTLLM)

    end = at(2026, 5, 20, 23, 24, 41)
    assert rows(trace, "steps", "rank", *COUNTS, "ts_ns", "dur_ns") == [
        (1, 1, "mixed", 1, 13694, 2, 2, end - 500_500_000, 500_500_000),
        (1, 2, "decode", 0, 0, 2, 2, end + 995_920_000, 4_080_000),
    ]
    assert ("prev_device_step_time", 243.13, "ms") in rows(
        trace, "counters", "name", "value", "unit"
    )


@pytest.mark.parametrize("layout", ["lines", "list"])
def test_iteration_statistics_are_steps_with_blocks_and_queues(tmp_path: Path, layout: str) -> None:
    lines = STATISTICS.splitlines()
    text = STATISTICS if layout == "lines" else f"[{', '.join(lines)}]\n"

    trace = open_log(tmp_path, text)

    columns = ("num_running", "num_waiting", "kv_blocks_free", "kv_blocks_total", "dur_ns")
    assert rows(trace, "steps", *COUNTS, *columns) == [
        (5, "mixed", 1, 77, 2, 2, 3, 4, 20, 100, 12_500_000),
        (6, "decode", 0, 0, 3, 3, None, None, None, None, 2_500_000),
    ]
    ends = at(2025, 7, 15, 6, 30, 11) + 123_456_000
    assert rows(trace, "steps", "ts_ns")[0] == ends - 12_500_000
    counters = rows(trace, "counters", "name", "value", "unit")
    assert ("gpuMemUsage", 1024.0, "bytes") in counters
    assert ("kvCacheStats.tokensPerBlock", 32.0, None) in counters
