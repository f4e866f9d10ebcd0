"""STV016: requests wait while most of the KV cache is unused, report after report."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.stv.stv016_queue_with_room import QueueWithRoom
from tests.analyzers.conftest import Record
from tests.analyzers.engine_reports import busy, log_of, prefill, sglang, vllm
from tests.analyzers.serving_rows import decode
from tests.looped import looped
from tests.traces import trace_of


def test_an_engine_that_runs_nobody_while_six_wait_is_found(tmp_path: Path) -> None:
    lines = [vllm(10 * n, 0, 6 - n % 2, 0.0) for n in range(9)]

    (found,) = QueueWithRoom().check(log_of(tmp_path, *lines))

    assert found.message == (
        "9 reports running (80.0 s) say that up to 6 requests wait while at most 0.0% of the KV "
        "cache is used and 0 run"
    )
    assert found.fix.startswith("see what the head of the queue lacks")
    assert (found.count, found.evidence["lasted_ns"]) == (1, 80_000_000_000)


def test_a_limit_on_those_that_run_is_found_and_its_option_named(tmp_path: Path) -> None:
    lines = [sglang(n, 32, 5, 0.31) for n in range(15)]

    (found,) = QueueWithRoom().check(log_of(tmp_path, *lines))

    assert "at most 31.0% of the KV cache is used and 32 run" in found.message
    assert "--max-running-requests" in found.fix


@looped(
    "lines",
    [
        pytest.param([vllm(10 * n, 4 + n, 9 - n, 10.0) for n in range(8)], id="more run each time"),
        pytest.param([vllm(10 * n, 4, 9, 51.0) for n in range(8)], id="the cache is half full"),
        pytest.param([vllm(10 * n, 4, 0, 10.0) for n in range(8)], id="nobody waits"),
        pytest.param([vllm(10 * n, 4, 9 * (n % 2), 1.0) for n in range(8)], id="not for long"),
        pytest.param([prefill(n, 4, 9, 0.1) for n in range(20)], id="a long prompt is computed"),
        pytest.param([busy(10 * n, 9 - n, 9, 10.0) for n in range(8)], id="prompts, and fewer run"),
        pytest.param([vllm(n, 4, 9, 10.0) for n in range(8)], id="for less than ten seconds"),
    ],
)
def test_queues_that_move_or_lack_room_are_clean(tmp_path: Path, lines: list[str]) -> None:
    result = check(log_of(tmp_path, *lines), (QueueWithRoom(),))

    assert (result.findings, result.not_applicable) == ((), ())


def test_requests_that_run_without_a_token_are_no_limit(tmp_path: Path) -> None:
    hung = [vllm(10 * n, 20, 7, 45.0).replace("throughput: 9.3", "throughput: 0.0")
            for n in range(60)]  # fmt: skip

    assert QueueWithRoom().check(log_of(tmp_path, *hung)) == []


def test_a_limit_is_found_though_prompts_come_in_as_others_leave(tmp_path: Path) -> None:
    lines = [busy(10 * n, 64, 9, 10.0) for n in range(8)]

    (found,) = QueueWithRoom().check(log_of(tmp_path, *lines))

    assert found.evidence["running at most"] == 64


def test_a_limit_is_found_though_the_number_that_run_varies_below_it(tmp_path: Path) -> None:
    lines = [busy(10 * n, 58 + 6 * n % 7, 20 + n % 9, 14.0) for n in range(36)]

    (found,) = QueueWithRoom().check(log_of(tmp_path, *lines))

    assert found.evidence["running at most"] == 64
    assert found.evidence["lasted_ns"] == 350_000_000_000


@looped("name", ["mamba usage", "swa token usage"])
def test_another_pool_that_is_full_is_named_instead_of_the_limit(tmp_path: Path, name: str) -> None:
    lines = [
        sglang(n, 2, 3, 0.34).replace("token usage: 0.34", f"token usage: 0.34, {name}: 0.98")
        for n in range(15)
    ]

    (found,) = QueueWithRoom().check(log_of(tmp_path, *lines))

    assert f"{name} is 98.0%" in found.message
    assert "raise the limit" not in found.fix


def test_another_pool_with_room_changes_nothing(tmp_path: Path) -> None:
    lines = [
        sglang(n, 2, 3, 0.34).replace("token usage: 0.34", "token usage: 0.34, mamba usage: 0.5")
        for n in range(15)
    ]

    (found,) = QueueWithRoom().check(log_of(tmp_path, *lines))

    assert "mamba" not in found.message
    assert "--max-running-requests" in found.fix


def test_a_log_that_does_not_say_how_full_the_cache_is_cannot_be_judged(tmp_path: Path) -> None:
    line = "mistralrs_core::engine::logger: Throughput (T/s) 11.20, Prefix cache hitrate 0.00%, " \
        "2 running, 1 waiting"  # fmt: skip

    trace = log_of(tmp_path, *[line] * 9)

    assert check(trace, (QueueWithRoom(),)).not_applicable == ("STV016",)


def test_recorded_steps_are_left_to_the_rules_that_know_more_of_them(record: Record) -> None:
    steps = [decode(n, 3, num_waiting=5, kv_blocks_free=60, kv_blocks_total=100) for n in range(9)]

    for trace in (trace_of(steps=steps), record("fcfs-preemption")):
        assert check(trace, (QueueWithRoom(),)).not_applicable == ("STV016",)
