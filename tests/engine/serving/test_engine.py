from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import OPTIONAL, EngineConfig
from stepscope.engine.executors.simulated import CostModel, Simulated
from stepscope.engine.faults import check_faults
from stepscope.engine.plan import Action, Admit, PlanRefused, Preempt, Run
from stepscope.engine.requests.request import Request
from stepscope.engine.runs.metrics import Totals, serving_metrics
from stepscope.engine.schedulers import Scheduler
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.serving.engine import Engine
from stepscope.engine.state import State
from stepscope.engine.workloads.workload import Workload
from stepscope.ingest.errors import ConfigError
from tests.engine.small_engines import UNIT_COST, request, serve
from tests.looped import looped


class Policy(Scheduler):
    """Does what a test tells it to do in each step."""

    name = "policy"
    supports = frozenset(OPTIONAL)

    def __init__(self, *steps: list[Any]) -> None:
        self.steps = steps

    def schedule(self, state: State) -> Iterator[Action]:
        for action, *more in self.steps[min(state.step, len(self.steps)) - 1]:
            requests = [*state.running, *state.waiting]
            yield action(requests[0], *more)


def test_a_request_arrives_is_admitted_gets_its_tokens_and_finishes() -> None:
    _, rows = serve([request("r", 4, 3)])
    told = [(row["ts_ns"], row["step"], row["event"]) for row in rows.of("lifecycle")]
    assert told == [
        (0, 1, "arrive"), (0, 1, "admit"), (1, 1, "first-token"), (3, 3, "finish"),
    ]  # fmt: skip
    assert [row["num_tokens"] for row in rows.of("batch_rows")] == [4, 1, 1]
    assert [row["position"] for row in rows.of("outputs")] == [0, 1, 2]


def test_a_step_is_recorded_with_what_its_batch_was_and_what_was_left() -> None:
    config = EngineConfig(num_kv_blocks=8, block_size=2, max_num_batched_tokens=64, max_num_seqs=9)
    _, rows = serve([request("r", 4, 2)], config=config)
    prefill, decode = rows.of("steps")
    assert (prefill["kind"], prefill["num_prefill_tokens"], prefill["dur_ns"]) == ("prefill", 4, 1)
    assert (prefill["token_budget"], prefill["kv_blocks_total"]) == (64, 8)
    assert (prefill["num_running"], prefill["kv_blocks_free"]) == (1, 6)
    assert (decode["kind"], decode["num_decode_tokens"], decode["kv_blocks_free"]) == (
        "decode",
        1,
        5,
    )
    assert decode["executed_path"] == "simulated-decode"
    assert decode["logits_rows"] == 1


def test_a_request_that_arrives_while_a_step_runs_keeps_its_own_time() -> None:
    slow = CostModel(base_ns=10, prefill_token_ns=0, decode_row_ns=0, kv_token_ns=0)
    _, rows = serve([request("a"), request("b", arrival_ns=3)], cost=slow)
    (arrived,) = rows.of("lifecycle", request="b", event="arrive")
    assert (arrived["ts_ns"], arrived["step"], arrived["queue_index"]) == (3, 1, 0)
    assert rows.of("lifecycle", request="b", event="admit")[0]["ts_ns"] == 10


def test_a_preempted_request_loses_its_blocks_keeps_its_tokens_and_computes_again() -> None:
    policy = Policy(
        [(Admit,), (Run, 4)],
        [(Run, 1)],
        [(lambda r: Preempt(r, "test", r, 0),)],
        [(Admit,), (Run, 6)],
        [(Run, 1)],
    )
    engine, rows = serve([request("r", 4, 4)], policy)
    again = rows.of("batch_rows", is_recompute=True)
    assert [(row["step"], row["phase"], row["num_tokens"]) for row in again] == [(4, "prefill", 6)]
    assert [row["position"] for row in rows.of("outputs")] == [0, 1, 2, 3]
    (ended,) = engine.ended
    assert (ended.request.num_preemptions, ended.request.num_recomputed) == (1, 5)
    assert [row["event"] for row in rows.of("lifecycle", step=4)][:1] == ["resume"]


def test_a_prefill_in_two_chunks_samples_after_the_second() -> None:
    policy = Policy([(Admit,), (Run, 3)], [(Run, 2)], [(Run, 1)])
    _, rows = serve([request("r", 5, 2)], policy)
    told = [(row["num_computed"], row["is_final_chunk"]) for row in rows.of("batch_rows")]
    assert told == [(0, False), (3, True), (5, None)]
    assert [row["step"] for row in rows.of("outputs")] == [2, 3]


@looped(
    ("step", "why"),
    [
        ([(Admit,), (Run, 4), (Run, 4)], "in the batch already"),
        ([(Run, 4)], "is waiting"),
        ([(Admit,), (Admit,)], "is admitted and running"),
        ([(Admit,), (Run, 5)], "not there to compute"),
        ([(Admit,), (Run, 4), (lambda r: Preempt(r, "test", r, 0),)], "is preempted"),
    ],
)
def test_a_plan_that_breaks_an_invariant_is_refused(step: list[Any], why: str) -> None:
    with pytest.raises(PlanRefused, match=why):
        serve([request("r", 4, 4)], Policy(step))


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (EngineConfig(num_kv_blocks=1, block_size=2), "lacks 2 KV blocks"),
        (EngineConfig(max_num_batched_tokens=3, max_num_seqs=1), "over the budget"),
    ],
)
def test_a_plan_over_the_limits_is_refused(config: EngineConfig, why: str) -> None:
    with pytest.raises(PlanRefused, match=why):
        serve([request("r", 4, 4)], Policy([(Admit,), (Run, 4)]), config)


def test_a_timeout_ends_the_run_and_says_so() -> None:
    engine, rows = serve([request("r", 4, 50)], config=EngineConfig(timeout_ns=5))
    (abort,) = rows.of("lifecycle", event="abort")
    assert (abort["ts_ns"], abort["num_generated"]) == (5, 5)
    assert "timed out" in abort["cause"]
    assert engine.state.kv_blocks.num_free == engine.config.num_kv_blocks


def test_a_policy_that_schedules_nothing_is_stopped_by_the_watchdog() -> None:
    engine, rows = serve([request("r")], Policy([]), EngineConfig(max_idle_steps=3))
    assert {row["kind"] for row in rows.of("steps")} == {"idle"}
    assert len(rows.of("steps")) == 4
    assert "watchdog" in rows.of("lifecycle", event="abort")[0]["cause"]
    assert engine.ended[0].event == "abort"


def test_an_engine_with_nothing_to_do_waits_for_the_next_request() -> None:
    _, rows = serve([request("a", 4, 1), request("b", 4, 1, arrival_ns=1000)])
    assert [row["ts_ns"] for row in rows.of("steps")] == [0, 1000]


def test_slots_are_claimed_with_admission_and_released_at_the_end() -> None:
    config = EngineConfig(num_slots=1)
    snapshots: list[dict[str, Any]] = []
    specs = [request("a", 4, 1), request("b", 4, 1)]
    _, rows = serve(specs, config=config, observer=snapshots.append)
    assert [each["slots"] for each in snapshots] == [{0: "a"}, {0: "b"}]
    changed = rows.of("allocations", resource="slot")
    assert [(row["op"], row["owner"], row["generation"]) for row in changed] == [
        ("claim", "a", 0), ("release", "a", 0), ("claim", "b", 1), ("release", "b", 1),
    ]  # fmt: skip
    assert [row["slot"] for row in rows.of("batch_rows")] == [0, 0]


def test_an_engine_runs_the_same_without_a_recorder() -> None:
    specs = [request("a", 4, 3), request("b", 2, 5, arrival_ns=1)]
    recorded, _ = serve(specs)
    silent = Engine(
        EngineConfig(), Workload(specs), Bucketed(), Simulated(UNIT_COST), VirtualClock()
    )
    silent.run()
    assert [each.end_ns for each in silent.ended] == [each.end_ns for each in recorded.ended]


def test_an_unknown_fault_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(ConfigError, match="try shortest-bucket"):
        EngineConfig(faults=frozenset({"shortest-buckets"}))
    check_faults({"shortest-bucket"})


def test_sizes_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="num_kv_blocks is 0"):
        EngineConfig(num_kv_blocks=0)
    with pytest.raises(ConfigError, match="would not fit a step"):
        EngineConfig(num_slots=5, max_num_batched_tokens=4, max_num_seqs=5)
    with pytest.raises(ConfigError, match="max_num_batched_tokens is 0"):
        EngineConfig(max_num_batched_tokens=0)


def test_who_is_told_of_the_ends_keeps_what_it_wants_of_them() -> None:
    totals = Totals()
    specs = [request("a"), request("b", arrival_ns=2), request("too long", prompt_len=90_000)]
    kept, _ = serve(specs)
    told = Engine(
        EngineConfig(), Workload(specs), Bucketed(), Simulated(UNIT_COST), VirtualClock(),
        on_end=totals.add,
    )  # fmt: skip
    told.run()

    assert told.ended == []
    assert totals.metrics(3) == serving_metrics(kept.ended, 3)
    assert totals.metrics(3)["finished"] == 2


def test_a_request_may_be_submitted_while_others_are_served() -> None:
    engine, rows = serve([request("a", max_tokens=3)])
    late = Request("late", 0, 4, 2)
    engine.submit(late)
    engine.run()

    assert [each.request.id for each in engine.ended] == ["a", "late"]
    assert late.arrival_ns == rows.of("lifecycle", request="late", event="arrive")[0]["ts_ns"] > 0
