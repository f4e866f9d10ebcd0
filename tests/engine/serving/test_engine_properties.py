from __future__ import annotations

from typing import Any

from hypothesis import given, settings

from stepscope.engine.config import EngineConfig
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import RequestSpec
from tests.engine.drawn_requests import knobs, requests, sizes
from tests.engine.small_engines import serve
from tests.tiers import examples


class Watch:
    """Checks the engine's state whenever a batch was formed."""

    def __init__(self) -> None:
        self.engine: Engine | None = None
        self.num_steps = 0

    def __call__(self, snapshot: dict[str, Any]) -> None:
        self.num_steps += 1
        scheduled = [request for request, _, _ in snapshot["batch"]]
        assert len(set(scheduled)) == len(scheduled)
        assert set(scheduled) <= set(snapshot["running"])
        assert not set(snapshot["waiting"]) & set(snapshot["running"])
        assert set(snapshot["kv_blocks"].values()) <= set(snapshot["running"])


@given(requests, knobs, sizes)
@settings(max_examples=examples(80))
def test_no_request_is_twice_in_a_batch_or_in_two_queues_and_only_the_running_hold_blocks(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig
) -> None:
    watch = Watch()
    engine, _ = serve(specs, scheduler, config, observer=watch)
    assert watch.num_steps == engine.state.step - 1


@given(requests, knobs, sizes)
@settings(max_examples=examples(80))
def test_every_request_ends_once_and_leaves_nothing_behind(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig
) -> None:
    engine, rows = serve(specs, scheduler, config)
    assert sorted(each.request.id for each in engine.ended) == sorted(spec.id for spec in specs)
    assert engine.state.kv_blocks.num_free == config.num_kv_blocks
    assert not engine.state.waiting
    assert not engine.state.running
    claims = len(rows.of("allocations", op="claim"))
    assert claims == len(rows.of("allocations", op="release"))


@given(requests, sizes)
@settings(max_examples=examples(80))
def test_without_faults_every_request_that_can_fit_finishes(
    specs: list[RequestSpec], config: EngineConfig
) -> None:
    engine, rows = serve(specs, Bucketed(), config)
    for request, event, *_ in engine.ended:
        fits = request.max_kv_tokens <= config.num_kv_blocks * config.block_size
        assert event == ("finish" if fits else "reject")
        assert request.num_generated == (request.max_tokens if fits else 0)
        assert len(rows.of("outputs", request=request.id)) == request.num_generated


@given(requests, sizes)
@settings(max_examples=examples(80))
def test_without_faults_requests_are_admitted_in_order_of_arrival(
    specs: list[RequestSpec], config: EngineConfig
) -> None:
    _, rows = serve(specs, Bucketed(), config)
    arrived = [row["request"] for row in rows.of("lifecycle", event="arrive")]
    admitted = [row["request"] for row in rows.of("lifecycle", event="admit")]
    assert admitted == [request for request in arrived if request in set(admitted)]


@given(requests, sizes)
@settings(max_examples=examples(80))
def test_without_faults_nobody_is_preempted_with_room_or_for_somebody_younger(
    specs: list[RequestSpec], config: EngineConfig
) -> None:
    _, rows = serve(specs, Bucketed(), config)
    arrived = [row["request"] for row in rows.of("lifecycle", event="arrive")]
    for row in rows.of("decisions", verdict="preempted"):
        assert row["needed"] > row["available"]
        assert arrived.index(row["holder"]) <= arrived.index(row["subject"])


@given(requests, knobs, sizes)
@settings(max_examples=examples(60))
def test_a_batch_keeps_to_the_token_budget_and_the_running_slots(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig
) -> None:
    _, rows = serve(specs, scheduler, config)
    for step in rows.of("steps"):
        tokens = step["num_prefill_tokens"] + step["num_decode_tokens"]
        assert tokens <= config.max_num_batched_tokens
        assert step["num_running"] <= config.max_num_seqs
        scheduled = rows.of("batch_rows", step=step["step"])
        assert tokens == sum(row["num_tokens"] for row in scheduled)


@given(requests, knobs, sizes)
@settings(max_examples=examples(30))
def test_the_same_workload_gives_the_same_rows(
    specs: list[RequestSpec], scheduler: Bucketed, config: EngineConfig
) -> None:
    _, first = serve(specs, scheduler, config)
    _, second = serve(specs, scheduler, config)
    assert first.tables == second.tables
