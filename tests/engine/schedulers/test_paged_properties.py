"""What holds for `paged` whatever the workload: the invariants of the engine, and its promises."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.engine.config import EngineConfig
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.workloads.workload import RequestSpec
from tests.engine.small_engines import serve
from tests.engine.state_of_rows import state_at
from tests.tiers import examples

EXAMPLES = 60
specs = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(1, 30), st.integers(1, 6), st.integers(0, 2),
        st.sampled_from(["text", "text", "image"]), st.sampled_from([None, 1, 3]),
        st.lists(st.integers(0, 1), max_size=1).map(tuple),
    ),
    min_size=1, max_size=10,
).map(
    lambda drawn: [
        RequestSpec(
            f"r{i}", arrival_ns, prompt_len, max_tokens, priority, modality, None, eos_after, prefix
        )
        for i, (arrival_ns, prompt_len, max_tokens, priority, modality, eos_after, prefix)
        in enumerate(drawn)
    ]
)  # fmt: skip
sizes = st.builds(
    EngineConfig,
    num_kv_blocks=st.integers(4, 24),
    block_size=st.integers(1, 4),
    max_num_seqs=st.integers(1, 6),
    max_num_batched_tokens=st.integers(1, 32),
    deferred_output=st.booleans(),
    prefix_cache=st.booleans(),
)
mixing = st.builds(
    Paged, reserve=st.booleans(), long_prefill_threshold=st.sampled_from([0, 3]),
    order=st.sampled_from(["fcfs", "priority"]),
)  # fmt: skip
plain = st.builds(
    Paged, mixed=st.just(False), long_prefill_threshold=st.sampled_from([0, 3]),
    mtp_k=st.integers(0, 3),
)  # fmt: skip


def sound(scheduler: Paged, config: EngineConfig) -> EngineConfig:
    """Drafts and deferred output exclude each other."""
    return replace(config, deferred_output=False) if scheduler.mtp_k else config


@given(specs, mixing | plain, sizes)
@settings(max_examples=examples(EXAMPLES))
def test_everybody_who_can_fit_gets_all_tokens_and_nothing_is_left_behind(
    asked: list[RequestSpec], scheduler: Paged, config: EngineConfig
) -> None:
    config = sound(scheduler, config)
    engine, rows = serve(asked, scheduler, config, acceptance=0.5)
    assert len(engine.ended) == len(asked)
    assert engine.state.kv_blocks.num_free == config.num_kv_blocks
    for request, event, *_ in engine.ended:
        fits_pool = request.max_kv_tokens + config.deferred_output <= (
            config.num_kv_blocks * config.block_size
        )
        fits_step = request.modality == "text" or request.prompt_len <= (
            config.max_num_batched_tokens
        )
        assert event == ("finish" if fits_pool and fits_step else "reject")
        wanted = min(request.max_tokens, request.eos_after or request.max_tokens)
        known = rows.of("outputs", request=request.id, is_placeholder=False)
        assert [row["position"] for row in known] == list(range(wanted if event == "finish" else 0))


@given(specs, mixing | plain, sizes)
@settings(max_examples=examples(EXAMPLES))
def test_a_step_keeps_to_budget_slots_reserve_layout_and_one_row_each(
    asked: list[RequestSpec], scheduler: Paged, config: EngineConfig
) -> None:
    config = sound(scheduler, config)
    _, rows = serve(asked, scheduler, config, acceptance=0.5)
    for step in rows.of("steps"):
        scheduled = rows.of("batch_rows", step=step["step"])
        phases = [row["phase"] for row in scheduled]
        assert phases == sorted(phases, reverse=True)
        assert max(Counter(row["request"] for row in scheduled).values(), default=1) == 1
        assert len(scheduled) <= step["num_running"] <= config.max_num_seqs
        budget = config.max_num_batched_tokens
        assert sum(row["num_tokens"] for row in scheduled) <= budget
        assert step["num_prefill_tokens"] <= budget - step["reserved_tokens"]
        assert scheduler.mixed or step["kind"] != "mixed"
        if scheduler.mixed and scheduler.reserve and step["kind"] == "mixed":
            assert step["reserved_tokens"] >= step["num_decode_reqs"]


@given(specs, mixing | plain, sizes)
@settings(max_examples=examples(EXAMPLES))
def test_blocks_are_owned_once_per_reference_and_the_rows_tell_the_state(
    asked: list[RequestSpec], scheduler: Paged, config: EngineConfig
) -> None:
    held: list[dict[str, Any]] = []
    config = sound(scheduler, config)
    engine, rows = serve(asked, scheduler, config, observer=held.append, acceptance=0.5)
    for snapshot in held:
        assert state_at(rows, snapshot["step"]) == snapshot
    users: Counter[int] = Counter()
    for row in rows.of("allocations"):
        users[row["id"]] += 1 if row["op"] != "release" else -1
        assert users[row["id"]] >= 0
        assert row["op"] != "claim" or users[row["id"]] == 1
    assert not any(users.values())
    assert engine.state.kv_blocks.owner == {}


@given(specs, mixing | plain, sizes)
@settings(max_examples=examples(EXAMPLES))
def test_who_is_not_in_the_batch_has_a_reason(
    asked: list[RequestSpec], scheduler: Paged, config: EngineConfig
) -> None:
    held: list[dict[str, Any]] = []
    config = sound(scheduler, config)
    _, rows = serve(asked, scheduler, config, observer=held.append, acceptance=0.5)
    decided = {(row["subject"], row["step"]) for row in rows.of("decisions")}
    turns = rows.of("lifecycle")
    for snapshot in held:
        scheduled = {request for request, _, _ in snapshot["batch"]}
        for name in {*snapshot["waiting"], *snapshot["running"]} - scheduled:
            since = max(
                row["step"] for row in turns
                if row["request"] == name and row["ts_ns"] <= snapshot["ts_ns"]
                and row["event"] in {"arrive", "admit", "resume", "preempt"}
            )  # fmt: skip
            steps = range(since, snapshot["step"] + 1)
            assert any((name, step) in decided for step in steps)


@given(specs, sizes)
@settings(max_examples=examples(EXAMPLES))
def test_requests_are_admitted_in_order_and_nobody_older_is_preempted_for_a_younger(
    asked: list[RequestSpec], config: EngineConfig
) -> None:
    equals = [RequestSpec(each.id, each.arrival_ns, each.prompt_len, each.max_tokens)
              for each in asked]  # fmt: skip
    _, rows = serve(equals, Paged(), config)
    arrived = [row["request"] for row in rows.of("lifecycle", event="arrive")]
    admitted = [row["request"] for row in rows.of("lifecycle", event="admit")]
    assert admitted == [request for request in arrived if request in set(admitted)]
    for row in rows.of("decisions", verdict="preempted"):
        assert row["needed"] > row["available"]
        assert arrived.index(row["holder"]) <= arrived.index(row["subject"])


@given(specs, mixing | plain, sizes)
@settings(max_examples=examples(20))
def test_the_same_workload_gives_the_same_rows(
    asked: list[RequestSpec], scheduler: Paged, config: EngineConfig
) -> None:
    config = sound(scheduler, config)
    first, second = (serve(asked, scheduler, config, acceptance=0.5)[1] for _ in range(2))
    assert first.tables == second.tables
