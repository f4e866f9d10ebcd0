"""KVB009: requests are retracted for KV round after round."""

from __future__ import annotations

import json
from pathlib import Path

from stepscope.analyzers.check.run import check
from stepscope.analyzers.rules.kvb.kvb009_retraction_storm import RetractionStorm
from stepscope.ingest.trace import Trace
from tests.analyzers.engine_reports import log_of, retraction, sglang, vllm
from tests.looped import looped
from tests.traces import trace_of


def test_rounds_that_follow_on_one_another_are_one_storm(tmp_path: Path) -> None:
    lines = [sglang(0, 60, 9, 0.97), *(retraction(n, 2) for n in (3, 4, 9, 15)), retraction(59)]

    (found,) = RetractionStorm().check(log_of(tmp_path, *lines, sglang(60, 9, 0, 0.1)))

    assert found.message == "4 rounds in 12.0 s retracted 8 requests"
    assert (found.count, found.evidence["requests in all storms"]) == (1, 8)


def test_intervals_of_vllm_with_preemptions_are_rounds(tmp_path: Path) -> None:
    lines = [vllm(10 * n, 9, 3 + n, 99.0) + ", Preemptions: 3" for n in range(5)]

    (found,) = RetractionStorm().check(log_of(tmp_path, *lines))

    assert found.message == (
        "5 rounds in 40.0 s retracted 15 requests; the KV cache was 99.0% full, up to 7 waited"
    )


def test_a_total_counts_by_what_it_grew(tmp_path: Path) -> None:
    del tmp_path
    total = [7, 9, 9, 12, 13, 14]
    samples = [
        {"name": "vllm:num_preemptions_total", "value": value, "ts_ns": n * 10**9}
        for n, value in enumerate(total)
    ]

    (found,) = RetractionStorm().check(trace_of(counters=samples))

    assert (found.evidence["rounds"], found.evidence["requests"]) == (4, 7)


@looped("seconds", [(0, 1, 2), (0, 20, 40, 60, 80), (0, 1, 2, 30, 31, 32)], ids=str)
def test_a_few_rounds_are_clean(tmp_path: Path, seconds: tuple[int, ...]) -> None:
    trace = log_of(tmp_path, *(retraction(second) for second in seconds))

    assert RetractionStorm().check(trace) == []


def totals(every_s: int, *values: int) -> Trace:
    return trace_of(
        counters=[
            {"name": "vllm:num_preemptions_total", "value": value, "ts_ns": n * every_s * 10**9}
            for n, value in enumerate(values)
        ]
    )


@looped("every_s", [1, 10, 15, 30, 60])
def test_a_total_that_grows_from_scrape_to_scrape_is_a_storm(tmp_path: Path, every_s: int) -> None:
    del tmp_path
    (found,) = RetractionStorm().check(totals(every_s, *range(0, 1_800, 300)))

    assert (found.evidence["rounds"], found.evidence["requests"]) == (5, 1_500)


@looped("values", [(0, 1, 1, 1, 1, 1), (0, 0, 1, 1, 2, 2), (0, 4, 4, 4, 4, 9)])
def test_a_total_that_grows_once_or_twice_is_clean(tmp_path: Path, values: tuple[int, ...]) -> None:
    del tmp_path
    assert RetractionStorm().check(totals(15, *values)) == []


@looped("num, num_found", [(1, 0), (2, 0), (300, 1)])
def test_preempted_requests_of_stat_lines_are_rounds(
    tmp_path: Path, num: int, num_found: int
) -> None:
    load = {"num_running_reqs": 60, "num_waiting_reqs": 30, "kv_cache_usage": 0.99}
    lines = [
        {"scheduler_stats": load,
         "iteration_stats": {"num_generation_tokens": 60, "num_prompt_tokens": 0,
                             "num_preempted_reqs": 4 if n < num else 0,
                             "iteration_timestamp": 1795000000.0 + n / 50}}
        for n in range(300)
    ]  # fmt: skip
    file = tmp_path / "stats.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))

    assert len(RetractionStorm().check(Trace.open(file))) == num_found


@looped("num, num_found", [(1, 0), (2, 0), (9, 1)])
def test_preemption_lines_of_vllm_v0_are_a_total(tmp_path: Path, num: int, num_found: int) -> None:
    lines = [
        f"WARNING 11-20 10:00:{5 * n:02} scheduler.py:1242] Sequence group cmpl-{n} is preempted "
        "by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space. "
        f"total_num_cumulative_preemption={1 + 50 * n}"
        for n in range(num)
    ]

    assert len(RetractionStorm().check(log_of(tmp_path, *lines))) == num_found


def test_a_log_of_sglang_without_retractions_is_clean_and_one_of_vllm_cannot_be_judged(
    tmp_path: Path,
) -> None:
    of_sglang = check(log_of(tmp_path, sglang(0, 60, 9, 0.97)), (RetractionStorm(),))
    of_vllm = check(log_of(tmp_path, vllm(0, 60, 9, 97.0)), (RetractionStorm(),))

    assert (of_sglang.findings, of_sglang.not_applicable) == ((), ())
    assert of_vllm.not_applicable == ("KVB009",)


def test_a_real_server_whose_pool_is_full_retracts_five_times_within_two_seconds(
    shared_data: Path,
) -> None:
    (found,) = RetractionStorm().check(Trace.open(shared_data / "logs" / "sglang_retract.log"))

    assert found.message == (
        "5 rounds in 1.0 s retracted 5 requests; the KV cache was 100.0% full, up to 18 waited"
    )
