"""STV021: requests run and no token is computed, report after report."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv021_no_progress import NoProgress
from tests.analyzers.engine_reports import busy, log_of, sglang, vllm
from tests.analyzers.serving_rows import decode
from tests.looped import looped
from tests.traces import trace_of


def quiet(second: int, running: int, waiting: int, usage: float) -> str:
    """An interval line of vLLM in which no token was generated."""
    return vllm(second, running, waiting, usage).replace("throughput: 9.3", "throughput: 0.0")


def prompts(second: int, running: int, usage: float) -> str:
    """An interval line of vLLM in which only prompts were computed."""
    return busy(second, running, 2, usage).replace("throughput: 9.3", "throughput: 0.0")


def found_in(folder: Path, *lines: str) -> list[Finding]:
    return NoProgress().check(log_of(folder, vllm(0, 3, 0, 9.0), *lines))


def test_requests_that_run_without_a_token_are_found(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, *(quiet(10 * n, 8, n, 52.0) for n in range(1, 9)))

    assert found.message == (
        "8 reports (70.0 s): 8 requests run and no token is computed; up to 8 wait, the KV cache "
        "is 52.0% full"
    )
    assert (found.count, found.evidence["lasted_ns"]) == (1, 70_000_000_000)


def test_prompts_that_are_computed_for_minutes_without_a_token_are_found(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, *(prompts(10 * n, 4, 90.0 + n % 3) for n in range(1, 25)))

    assert "only prompts are computed" in found.message
    assert "preempted" in found.fix


def test_requests_that_wait_for_minutes_while_none_runs_are_found(tmp_path: Path) -> None:
    (found,) = found_in(tmp_path, *(quiet(10 * n, 0, 5, 0.0) for n in range(1, 25)))

    assert "5 requests wait and no token is computed" in found.message
    assert "the head of the queue" in found.fix


def without_a_clock(lines: list[str]) -> list[str]:
    return [line[line.index("Engine 000") :] for line in lines]


def test_without_a_clock_the_number_of_reports_tells(tmp_path: Path) -> None:
    served = [vllm(10 * n, 8, 0, 52.0) for n in range(5)]
    hung = [quiet(10 * n, 8, 3, 52.0) for n in range(5, 35)]

    (found,) = NoProgress().check(log_of(tmp_path, *without_a_clock([*served, *hung])))
    few = check(log_of(tmp_path, *without_a_clock([*served, *hung[:11]])), (NoProgress(),))

    assert found.message == (
        "30 reports: 8 requests run and no token is computed; up to 3 wait, the KV cache is 52.0% "
        "full"
    )
    assert "lasted_ns" not in found.evidence
    assert (few.findings, few.not_applicable) == ((), ())


@looped(
    "lines",
    [
        pytest.param([quiet(10 * n, 1, 0, 5.0 + n) for n in range(1, 30)], id="KV fills"),
        pytest.param([quiet(10 * n, 0, 0, 5.0) for n in range(1, 30)], id="nothing runs"),
        pytest.param([quiet(10 * n, 0, 2, 5.0) for n in range(1, 15)], id="2 wait for 130 seconds"),
        pytest.param([quiet(10 * n, 4, 0, 5.0) for n in range(1, 4)], id="for 20 seconds"),
        pytest.param([prompts(10 * n, 4, 5.0) for n in range(1, 12)], id="prompts for 110 seconds"),
        pytest.param([(quiet if n % 3 else vllm)(10 * n, 4, 0, 5.0) for n in range(1, 30)],
                     id="a token now and then"),
        pytest.param([sglang(2 * n, 4, 0, 0.5) for n in range(1, 30)], id="decode batches"),
    ],
)  # fmt: skip
def test_engines_that_compute_something_are_clean(tmp_path: Path, lines: list[str]) -> None:
    assert found_in(tmp_path, *lines) == []


def test_an_engine_that_never_generates_is_not_judged(tmp_path: Path) -> None:
    trace = log_of(tmp_path, *(prompts(10 * n, 4, 5.0) for n in range(40)))

    assert check(trace, (NoProgress(),)).not_applicable == ("STV021",)


def test_steps_that_schedule_nothing_while_requests_run_are_found() -> None:
    second = 1_000_000_000
    idle = [
        {"step": 2 + n, "kind": "idle", "ts_ns": (2 + n) * second, "dur_ns": second,
         "num_running": 256, "num_prefill_tokens": 0, "num_decode_tokens": 0}
        for n in range(40)
    ]  # fmt: skip
    first = {**decode(1, 4, num_running=4), "num_prefill_tokens": 0, "ts_ns": 0}

    (found,) = NoProgress().check(trace_of(steps=[first, *idle]))
    few = NoProgress().check(trace_of(steps=[first, *idle[:20]]))

    assert (found.step, found.evidence["longest run_reports"]) == (2, 40)
    assert few == []


def test_steps_that_schedule_nothing_while_requests_wait_name_the_owner_of_the_blocks() -> None:
    second = 1_000_000_000
    steps = [
        {"step": 2 + n, "kind": "idle", "ts_ns": (2 + n) * second, "dur_ns": second,
         "num_running": 0, "num_waiting": 3, "num_prefill_tokens": 0, "num_decode_tokens": 0}
        for n in range(60)
    ]  # fmt: skip
    first = {**decode(1, 4, num_running=4), "num_prefill_tokens": 0, "ts_ns": 0}
    claims = [
        {"step": 1, "ts_ns": n, "resource": "kv-block", "id": n, "op": "claim", "owner": owner}
        for n, owner in enumerate("LLLLH")
    ]
    freed = {"step": 9, "ts_ns": 9 * second, "resource": "kv-block", "id": 4, "op": "release",
             "owner": "H"}  # fmt: skip

    (found,) = NoProgress().check(trace_of(steps=[first, *steps], allocations=[*claims, freed]))

    assert found.message == (
        "60 steps (59.0 s): 3 requests wait and no token is computed; L owns 4 KV blocks"
    )
    assert "the owner of the blocks" in found.fix


@looped("given_back, says", [(0, "20 preemptions released no KV block"), (1, "20 preemptions")])
def test_preemptions_without_progress_are_counted_with_the_blocks_that_they_gave_back(
    given_back: int, says: str
) -> None:
    second = 1_000_000_000
    steps = [
        {"step": 2 + n, "kind": "idle", "ts_ns": (2 + n) * second, "dur_ns": second,
         "num_running": 0, "num_waiting": 2, "num_prefill_tokens": 0, "num_decode_tokens": 0}
        for n in range(60)
    ]  # fmt: skip
    first = {**decode(1, 4, num_running=4), "num_prefill_tokens": 0, "ts_ns": 0}
    preempted = [
        {"step": 10 + n, "ts_ns": (10 + n) * second, "request": "L", "event": "preempt"}
        for n in range(20)
    ]
    claims = [
        {"step": 1, "ts_ns": n, "resource": "kv-block", "id": n, "op": "claim", "owner": "L"}
        for n in range(4)
    ]
    freed = [
        {"step": 12, "ts_ns": 12 * second, "resource": "kv-block", "id": n, "op": "release",
         "owner": "L"} for n in range(given_back)
    ]  # fmt: skip

    (found,) = NoProgress().check(
        trace_of(steps=[first, *steps], lifecycle=preempted, allocations=[*claims, *freed])
    )

    assert found.message.endswith(says)
    assert found.evidence["blocks given back"] == given_back
