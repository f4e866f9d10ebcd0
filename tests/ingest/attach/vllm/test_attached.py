"""A scheduler like vLLM's is in the trace as it was: batches, queue, blocks, owners, outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stepscope.ingest.trace import Trace
from tests.ingest.attach.vllm.recorded import Recorded
from tests.ingest.attach.vllm.stand_in import Request, Scheduler, Status
from tests.ingest.kineto_files import rows
from tests.vllm.judging.state import differences


def crowd(**more: Any) -> list[Request]:
    return [
        Request(f"r{number}", 3 + number * 5 % 11, 2 + number * 3 % 7, arrival_time=number, **more)
        for number in range(9)
    ]


def run(folder: Path, requests: list[Request], **settings: Any) -> tuple[Trace, Recorded]:
    recorded = Recorded(folder, **settings)
    recorded.add(*requests)
    while recorded.scheduler.requests:
        recorded.step()
        assert len(recorded.lines) < 500
    return recorded.trace(), recorded


SETTINGS = [
    pytest.param({"num_blocks": 32}, id="room for all"),
    pytest.param({"num_blocks": 5}, id="preemption"),
    pytest.param({"budget": 5}, id="chunked prefill"),
    pytest.param({"num_blocks": 6, "policy": "priority"}, id="priorities"),
    pytest.param({"max_num_seqs": 1}, id="one at a time"),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_queue_batch_blocks_and_owners_are_the_schedulers_at_every_step(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    requests = crowd()
    for number, request in enumerate(requests):
        request.priority = number * 7 % 3
    trace, recorded = run(tmp_path, requests, **settings)

    assert differences(trace, recorded.lines) == []
    assert trace.num_rows("steps") == len(recorded.lines)


def test_a_difference_would_be_seen(tmp_path: Path) -> None:
    trace, recorded = run(tmp_path, crowd(), num_blocks=5)
    recorded.lines[3]["waiting"] = recorded.lines[3]["waiting"][::-1]

    assert len(differences(trace, recorded.lines)) == 1


def test_outputs_are_those_that_were_given_with_the_step_that_gave_them(tmp_path: Path) -> None:
    trace, _ = run(tmp_path, [Request("a", 6, 2), Request("b", 4, 1)], budget=8)

    assert sorted(rows(trace, "outputs", "request", "position", "source_step")) == [
        ("a", 0, 1), ("a", 1, 2), ("b", 0, 2),
    ]  # fmt: skip


def test_rows_of_a_prompt_in_chunks_say_what_was_computed_and_which_is_the_last(
    tmp_path: Path,
) -> None:
    trace, _ = run(tmp_path, [Request("a", 10, 2)], budget=4)

    columns = ("phase", "num_tokens", "num_computed", "is_final_chunk", "prompt_len")
    assert rows(trace, "batch_rows", *columns) == [
        ("prefill", 4, 0, False, 10), ("prefill", 4, 4, False, 10), ("prefill", 2, 8, True, 10),
        ("decode", 1, 10, None, 10),
    ]  # fmt: skip


def test_a_request_is_admitted_when_the_call_looked_at_it_however_long_that_takes(
    tmp_path: Path,
) -> None:
    now = [10**18]
    scheduler = Scheduler(num_blocks=32)
    allocate = scheduler.kv_cache_manager.allocate_slots

    def slow(*args: Any, **kwargs: Any) -> Any:
        now[0] += 5_000_000
        return allocate(*args, **kwargs)

    vars(scheduler.kv_cache_manager)["allocate_slots"] = slow
    recorded = Recorded(tmp_path, scheduler, now_ns=lambda: now[0])
    recorded.add(*crowd()[:2])
    recorded.step()
    trace = recorded.trace()

    told = [told for told in rows(trace, "lifecycle", "event", "ts_ns") if told[0] == "admit"]
    assert told == [("admit", 10**18)] * 2
    assert rows(trace, "steps", "formed_ns") == [10**18 + 10_000_000]


def test_what_a_preemption_threw_away_is_computed_again(tmp_path: Path) -> None:
    trace, _ = run(tmp_path, [Request("a", 8, 6), Request("b", 8, 6)], num_blocks=4)

    events = [
        (row["event"], row["request"], row["by_request"])
        for row in trace.lifecycle.collect().rows(named=True)
        if row["event"] in ("preempt", "resume")
    ]
    (again,) = trace.batch_rows.filter(pl.col("is_recompute")).collect().rows(named=True)
    assert events == [("preempt", "b", "a"), ("resume", "b", None)]
    assert (again["request"], again["num_computed"]) == ("b", 0)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda run: run.step(), ("finish", "length_capped")),
        (lambda run: run.step(refused=("a",)), ("error", "error")),
        (
            lambda run: run.scheduler.finish_requests(["a"], Status.FINISHED_ABORTED),
            ("abort", "aborted"),
        ),
    ],
    ids=["it has its tokens", "an error", "given up"],
)
def test_how_a_request_ended_is_told(tmp_path: Path, end: Any, told: tuple[str, str]) -> None:
    recorded = Recorded(tmp_path)
    recorded.add(Request("a", 4, 2))
    recorded.step()

    end(recorded)

    trace = recorded.trace()
    assert rows(trace, "lifecycle", "event", "cause")[-1] == told
    held = rows(trace, "allocations", "op", "owner")
    assert held.count(("claim", "a")) == held.count(("release", "a")) > 0


def test_an_output_that_came_after_its_request_was_aborted_is_none(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path)
    recorded.add(Request("a"), Request("b"))
    output = recorded.form()

    recorded.scheduler.finish_requests(["a"], Status.FINISHED_ABORTED)
    recorded.scheduler.update_from_output(output, None)

    assert rows(recorded.trace(), "outputs", "request") == ["b"]


def test_two_batches_under_way_at_once_are_begun_one_after_the_other(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, is_async=True)
    recorded.add(Request("a", 4, 3))
    first, second = recorded.form(), recorded.form()
    for output in (first, second):
        recorded.scheduler.update_from_output(output, None)

    trace = recorded.trace()
    (one, two) = trace.steps.collect().rows(named=True)
    assert one["ts_ns"] + one["dur_ns"] == two["ts_ns"] > two["formed_ns"]
    assert differences(trace, recorded.lines) == []


def test_blocks_that_the_prefix_cache_finds_are_shared_and_evicted_ones_are_told(
    tmp_path: Path,
) -> None:
    same = ("x", "y")
    requests = [Request("a", 9, 1, contents=same), Request("b", 9, 1, contents=same)]
    recorded = Recorded(tmp_path, caches=True, num_blocks=4)
    recorded.add(requests[0])
    recorded.step()
    recorded.add(requests[1])
    recorded.step()
    recorded.add(Request("c", 15, 1, contents=("p", "q", "r")))
    recorded.step()

    trace = recorded.trace()
    assert differences(trace, recorded.lines) == []
    told = rows(trace, "allocations", "op", "owner", "id")
    assert [row for row in told if row[0] in ("share", "cache")] == [
        ("cache", "a", 1), ("cache", "a", 2), ("share", "b", 1), ("share", "b", 2),
        ("cache", "c", 3), ("cache", "c", 4), ("cache", "c", 2),
    ]  # fmt: skip
    assert {row[2] for row in told if row[0] == "evict"} == {1, 2}
    cached = rows(trace, "batch_rows", "request", "num_cached")
    assert cached == [("a", 0), ("b", 8), ("c", 0)]


def test_a_cache_that_was_reset_finds_nothing_any_more(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, caches=True)
    recorded.add(Request("a", 9, 1, contents=("x", "y")))
    recorded.step()

    assert recorded.scheduler.reset_prefix_cache()
    recorded.add(Request("b", 4, 1))
    recorded.step()

    trace = recorded.trace()
    assert [row for row in rows(trace, "allocations", "op", "id") if row[0] == "evict"] == [
        ("evict", 1), ("evict", 2),
    ]  # fmt: skip
    assert rows(trace, "steps", "kv_blocks_cached") == [0, 0]


def test_counts_of_a_step_are_those_of_its_batch_and_of_the_pool(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path, num_blocks=6, budget=12, max_num_seqs=2)
    recorded.add(Request("a", 4, 3))
    recorded.step()
    recorded.add(Request("b", 8, 2), Request("c", 4, 2))
    recorded.step()

    names = ("kind", "num_prefill_reqs", "num_decode_reqs", "num_prefill_tokens",
             "num_decode_tokens", "token_budget", "num_waiting", "num_running", "kv_blocks_free",
             "kv_blocks_total")  # fmt: skip
    assert rows(recorded.trace(), "steps", *names) == [
        ("prefill", 1, 0, 4, 0, 12, 0, 1, 5, 6), ("mixed", 1, 1, 8, 1, 12, 1, 2, 2, 6),
    ]  # fmt: skip


def test_a_session_whose_input_has_not_ended_goes_back_to_the_queue(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path)
    recorded.add(Request("a", 4, 1, resumable=True))
    recorded.step()

    last = recorded.trace().lifecycle.collect().rows(named=True)[-1]
    assert (last["event"], last["request"], last["queue_index"]) == ("defer", "a", 0)


def test_a_scheduler_that_is_shut_down_has_its_recording_closed(tmp_path: Path) -> None:
    recorded = Recorded(tmp_path)
    recorded.add(Request("a"))
    recorded.step()

    recorded.scheduler.shutdown()

    assert Trace.open(recorded.path).manifest.closed
