"""A dump of a scheduler: one instant that says everything, and the order of its queue."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepscope.ingest.attach.vllm.dump import dumper, state_of
from stepscope.ingest.recorder import Recorder
from stepscope.ingest.trace import Trace


def _request(name: str, status: str, blocks: int) -> Any:
    return SimpleNamespace(
        request_id=name, status=SimpleNamespace(name=status), num_prompt_tokens=40,
        num_computed_tokens=32, num_output_tokens=0, num_preemptions=1, blocks=blocks,
    )  # fmt: skip


@pytest.fixture
def scheduler() -> Any:
    waiting = [_request("r-2", "WAITING", 0), _request("r-3", "PREEMPTED", 0)]
    running = [_request("r-1", "RUNNING", 2)]
    blocks = {each.request_id: ([*range(each.blocks)],) for each in (*waiting, *running)}
    manager = SimpleNamespace(
        get_block_ids=blocks.__getitem__,
        block_pool=SimpleNamespace(get_num_free_blocks=lambda: 7),
    )
    return SimpleNamespace(waiting=waiting, running=running, kv_cache_manager=manager)


def test_a_dump_says_why_who_waits_who_runs_and_where_the_threads_stand(
    scheduler: Any, tmp_path: Path
) -> None:
    with Recorder(tmp_path / "t.trace", producer="vllm") as recorder:
        dumper(recorder, scheduler, lambda: 12)("signal SIGUSR2")

    trace = Trace.open(tmp_path / "t.trace")
    (span,) = trace.spans.collect().rows(named=True)
    told = json.loads(span["args"])
    assert (span["step"], span["name"], span["form"]) == (12, "scheduler dump", "instant")
    assert told["why"] == "signal SIGUSR2"
    assert [each["request"] for each in told["waiting"]] == ["r-2", "r-3"]
    assert told["running"][0] == {
        "request": "r-1", "status": "RUNNING", "prompt": 40, "computed": 32, "generated": 0,
        "blocks": 2, "preemptions": 1,
    }  # fmt: skip
    assert (told["num_waiting"], told["kv_blocks_free"]) == (2, 7)
    order = trace.queue_order.select("step", "index", "request").collect().rows()
    assert order == [(12, 0, "r-2"), (12, 1, "r-3")]


def test_what_a_version_does_not_have_is_left_out_and_not_guessed(scheduler: Any) -> None:
    del scheduler.kv_cache_manager.block_pool

    told = state_of(scheduler)

    assert "kv_blocks_free" not in told
    assert "paused" not in told


def test_queues_of_a_scheduler_with_several_are_in_the_order_in_which_it_empties_them(
    scheduler: Any,
) -> None:
    scheduler.kv_holding_waiting, scheduler.waiting = scheduler.waiting[1:], scheduler.waiting[:1]

    assert [each["request"] for each in state_of(scheduler)["waiting"]] == ["r-3", "r-2"]
