"""COL010: some data-parallel ranks have far more requests than others."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.col.col010_load_imbalance import LoadImbalance
from tests.analyzers.conftest import Record
from tests.analyzers.engine_reports import decode_server, log_of, prefill_server, sglang, vllm
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import step
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of

SECOND = 1_000_000_000


def reports(*loads: tuple[int, int], num: int = 4) -> list[str]:
    """Interval lines of vLLM, every ten seconds, of engines with so many running and waiting."""
    return [
        vllm(10 * n, running, waiting, 50.0, engine=engine)
        for n in range(num)
        for engine, (running, waiting) in enumerate(loads)
    ]


def test_requests_that_wait_on_one_rank_with_room_on_another_are_found(tmp_path: Path) -> None:
    (found,) = LoadImbalance().check(log_of(tmp_path, *reports((51, 117), (31, 10), (20, 0))))

    assert found.message == (
        "for 30.0 s rank 0 had 168 requests (117 waiting) and rank 2 had 20 (none waiting): "
        "8.4 times as many"
    )
    assert found.rank == 0
    assert [found.evidence[f"requests of rank {rank}"] for rank in range(3)] == [168, 41, 20]


def test_what_ranks_report_at_one_moment_has_no_order() -> None:
    early, late = ((17, 9), (1, 0)), ((8, 0), (0, 0))
    steps = [
        step(n, rank=rank, ts_ns=n * SECOND, num_running=running, num_waiting=waiting)
        for n in range(20)
        for rank, (running, waiting) in enumerate(early if n < 9 else late)
    ]

    (found,) = LoadImbalance().check(trace_of(steps=steps))

    assert found.evidence["lasted_ns"] == 19 * SECOND


def loads_of_steps(uneven: range, num: int = 40, step_ms: int = 50) -> list[Row]:
    """Steps of two ranks with nine requests each, but for `uneven` steps with 48 and 1."""
    return [
        step(n, rank=rank, ts_ns=n * step_ms * SECOND // 1_000, num_running=load, num_waiting=0)
        for n in range(num)
        for rank, load in enumerate((48, 1) if n in uneven else (9, 9))
    ]


@looped(
    ("steps", "num_found"),
    [
        pytest.param(loads_of_steps(range(40)), 1, id="two seconds"),
        pytest.param(loads_of_steps(range(40), step_ms=1), 1, id="40 milliseconds"),
        pytest.param(loads_of_steps(range(20, 32)), 1, id="a quarter of them"),
        pytest.param(loads_of_steps(range(20, 28)), 0, id="less"),
        pytest.param(loads_of_steps(range(6), num=6), 0, id="a few steps in all"),
    ],
)
def test_a_short_run_is_judged_by_a_share_of_it(steps: list[Row], num_found: int) -> None:
    assert len(LoadImbalance().check(trace_of(steps=steps))) == num_found


@looped(("requests", "max_tokens"), [("49", "200"), ("24", "64"), ("12", "8")])
def test_requests_dealt_to_one_rank_are_found_in_runs_of_seconds(
    record: Record, requests: str, max_tokens: str
) -> None:
    sizes = {"requests": requests, "max_tokens": max_tokens, "prompt_len": "256"}
    dealt = record("mixed-batches", "data-parallel", fault="dealt-to-one-rank", **sizes)

    (found,) = LoadImbalance().check(dealt)

    assert (found.rank, found.evidence["requests of rank 1"]) == (0, 1)
    assert LoadImbalance().check(record("mixed-batches", "data-parallel", **sizes)) == []


def test_a_rank_that_has_nothing_is_found(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(0, 30, 3)
        for line in (sglang(n, 12, 0, 0.5, rank="DP0 TP0"), sglang(n, 0, 0, 0.0, rank="DP1 TP1"))
    ]

    (found,) = LoadImbalance().check(log_of(tmp_path, *lines))

    assert found.message == (
        "for 27.0 s rank 0 had 12 requests (none waiting) and rank 1 had 0 (none waiting)"
    )


@looped(
    "lines",
    [
        pytest.param(reports((51, 9), (40, 0)), id="less than twice as many"),
        pytest.param(reports((9, 0), (2, 0)), id="few requests"),
        pytest.param(reports((51, 117), (31, 10), num=1), id="for a moment"),
    ],
)
def test_ranks_that_are_about_even_are_clean(tmp_path: Path, lines: list[str]) -> None:
    result = check(log_of(tmp_path, *lines), (LoadImbalance(),))

    assert (result.findings, result.not_applicable) == ((), ())


def test_a_rank_that_was_not_heard_of_for_long_is_not_compared(tmp_path: Path) -> None:
    silent = [vllm(10 * n, 1, 0, 1.0, engine=1) for n in range(4)]
    alone = [vllm(10 * n, 60, 60, 90.0) for n in range(30)]

    (found,) = LoadImbalance().check(log_of(tmp_path, *silent, *alone))

    assert found.evidence["lasted_ns"] == 30_000_000_000


def test_no_time_counts_after_the_last_report_of_a_rank(tmp_path: Path) -> None:
    even = reports((20, 0), (16, 0))
    drained = [vllm(40 + 10 * n, running, 0, 30.0, engine=engine)
               for n in range(30) for engine, running in enumerate((20, 0))
               if engine == 0 or n < 2]  # fmt: skip

    (found,) = LoadImbalance().check(log_of(tmp_path, *even, *drained))

    assert found.message.startswith("for 10.0 s rank 0 had 20 requests")


def test_one_rank_and_several_engines_are_not_compared(tmp_path: Path) -> None:
    one = log_of(tmp_path, *(vllm(10 * n, 60, 60, 90.0) for n in range(9)))
    assert check(one, (LoadImbalance(),)).not_applicable == ("COL010",)

    lines = [line for n in range(30) for line in (vllm(n, 60, 9, 90.0), sglang(n, 1, 0, 0.1))]
    assert check(log_of(tmp_path, *lines), (LoadImbalance(),)).not_applicable == ("COL010",)


def test_a_server_that_prefills_is_not_compared_with_one_that_decodes(tmp_path: Path) -> None:
    lines = [
        line
        for n in range(20)
        for line in (
            f"prefill-1  | {prefill_server(n, 0, 1)}",
            f"decode-1   | {decode_server(n, 9, 30)}",
        )
    ]

    assert check(log_of(tmp_path, *lines), (LoadImbalance(),)).not_applicable == ("COL010",)


def test_requests_that_are_all_dealt_to_one_rank_are_found(record: Record) -> None:
    (found,) = LoadImbalance().check(
        record("mixed-batches", "data-parallel", fault="dealt-to-one-rank")
    )

    assert found.rank == 0
    assert found.evidence["requests of rank 1"] == 1


@slow
def test_a_sound_engine_that_deals_in_turn_is_clean(record: Record) -> None:
    result = check(record("mixed-batches", "data-parallel"), (LoadImbalance(),))

    assert (result.findings, result.not_applicable) == ((), ())


def prompt_of(second: int, rank: int, tokens: int, waiting: int) -> str:
    """A line of a prefill batch of a data-parallel rank of SGLang."""
    return (
        f"[2026-09-13 16:{second // 60:02}:{second % 60:02} DP{rank} TP{rank}] Prefill batch, "
        f"#new-seq: 1, #new-token: {tokens}, #cached-token: 0, token usage: 0.3, #running-req: 8, "
        f"#queue-req: {waiting}"
    )


def prompts_of_four(num: int, last: int, waiting: int, every_s: int = 3) -> list[str]:
    """Three ranks with full batches, and one with `last` tokens and `waiting` requests."""
    ranks = [(0, 8192, 2), (1, 8192, 2), (2, 8192, 2), (3, last, waiting)]
    return [prompt_of(every_s * n, *rank) for n in range(num) for rank in ranks]


def test_a_rank_that_computes_few_tokens_next_to_queues_is_found(tmp_path: Path) -> None:
    (found,) = LoadImbalance().check(log_of(tmp_path, *prompts_of_four(40, 256, 0)))

    assert found.rank == 3
    assert found.evidence["prompt tokens of rank 3"] == 256
    assert found.evidence["lasted_ns"] == 117_000_000_000


@looped(
    ("num", "last", "waiting"),
    [(40, 256, 1), (40, 4096, 0), (15, 256, 0)],
    ids=str,
)
def test_ranks_that_have_a_queue_too_or_in_few_reports_are_clean(
    tmp_path: Path, num: int, last: int, waiting: int
) -> None:
    assert LoadImbalance().check(log_of(tmp_path, *prompts_of_four(num, last, waiting))) == []
