"""Every scheduler over every pool, driven by hand: requests come whenever they like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import Simulated
from stepscope.engine.requests.request import Request
from stepscope.engine.schedulers import SCHEDULERS, Scheduler
from stepscope.engine.serving.engine import Engine
from stepscope.ingest.errors import ConfigError
from tests.engine.rows import Rows
from tests.engine.small_engines import UNIT_COST
from tests.tiers import examples

Setup = tuple[Scheduler, EngineConfig]
clients = st.tuples(
    st.integers(0, 3),  # arrival, from now on
    st.integers(1, 12),  # prompt
    st.integers(1, 8),  # output
    st.integers(0, 2),  # priority
    st.sampled_from(["text", "text", "text", "image"]),
    st.none(),  # deadline
    st.sampled_from([None, None, None, 3]),  # end of the output
    st.sampled_from([(), (1,)]),  # what the prompt begins with
)


STUCK = {"requeue"}  # a queue put back on itself never ends: a test of its own shows the watchdog


def turned(policy: type[Scheduler]) -> Iterator[Scheduler]:
    """The policy with its knobs turned in every way that it accepts."""
    for values in product(*policy.knobs.values()):
        if not STUCK & set(values):
            with suppress(ConfigError):
                yield policy(**dict(zip(policy.knobs, values, strict=True)))


@st.composite
def setups_of(draw: st.DrawFn, policy: type[Scheduler]) -> Setup:
    """A policy, and an engine with anything that it supports."""
    scheduler = draw(st.sampled_from(list(turned(policy))))
    optional: dict[str, Any] = {name: draw(st.booleans()) for name in sorted(scheduler.supports)}
    pools = slotted_pools(getattr(scheduler, "slot_tokens", 0)) if policy.slotted else block_pools
    pool: dict[str, Any] = draw(pools)
    return scheduler, EngineConfig(**pool, **optional)


@st.composite
def slotted_pools(draw: st.DrawFn, slot_tokens: int) -> dict[str, Any]:
    """Slots, and a budget in which the longest request and a decode of every slot fit."""
    num_slots = draw(st.integers(1, 4))
    return {
        "num_kv_blocks": 0, "num_slots": num_slots, "max_num_seqs": num_slots,
        "max_num_batched_tokens": num_slots * draw(st.integers(slot_tokens + 1, 2 * slot_tokens)),
    }  # fmt: skip


block_pools: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "num_kv_blocks": st.integers(4, 16), "block_size": st.integers(1, 4),
        "max_num_seqs": st.integers(2, 8), "max_num_batched_tokens": st.integers(8, 40),
        "num_slots": st.sampled_from([0, 0, 3]),
    }
)  # fmt: skip


class Serving(RuleBasedStateMachine):
    """Requests arrive and steps are taken in any order; what must hold holds after each of them."""

    asked: dict[str, Request]

    setups: st.SearchStrategy[Setup]

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.scheduler, self.config = data.draw(self.setups)
        self.rows = Rows()
        self.asked = {}
        self.engine = Engine(
            self.config, (), self.scheduler, Simulated(UNIT_COST, acceptance=0.5), VirtualClock(),
            self.rows.recorder,
        )  # fmt: skip

    @rule(several=st.lists(clients, min_size=1, max_size=4))
    def arrive(self, several: list[tuple[Any, ...]]) -> None:
        for gap_ns, prompt_len, max_tokens, *rest in several:
            arrival_ns = self.engine.clock.now_ns() + gap_ns
            request = Request(f"r{len(self.asked)}", arrival_ns, prompt_len, max_tokens, *rest)
            self.asked[request.id] = request
            self.engine.submit(request)

    @rule(times=st.integers(1, 4))
    def step(self, times: int) -> None:
        for _ in range(times):
            self.engine.take_arrivals()
            self.engine.step()

    @rule(seldom=st.integers(0, 5))
    def drain(self, seldom: int) -> None:
        if seldom:
            return
        self.engine.run()
        assert not self.engine.state.num_requests
        assert {each.request.id for each in self.engine.ended} == set(self.asked)

    @invariant()
    def every_block_is_free_or_used_by_those_who_run(self) -> None:
        blocks, running = self.engine.state.kv_blocks, self.engine.state.running
        uses = Counter(block for request in running for block in request.block_table)
        assert set(blocks.owner) == set(uses)
        assert all(blocks.num_references(block) == times for block, times in uses.items())
        assert blocks.num_free == blocks.num_blocks - len(uses)
        for request in running:
            assert len(set(request.block_table)) == len(request.block_table)
            held = len(request.block_table) * blocks.block_size
            assert not blocks.num_blocks or held >= request.num_computed

    @invariant()
    def every_slot_is_free_or_one_requests(self) -> None:
        state = self.engine.state
        if state.slots:
            owners = {request.slot: request.id for request in state.running}
            assert state.slots.owner == owners
            assert state.slots.num_free == self.config.num_slots - len(owners)

    @invariant()
    def every_request_is_in_one_place(self) -> None:
        state = self.engine.state
        assert len(state.running) <= self.config.max_num_seqs
        places = [*state.waiting, *state.running, *(each.request for each in self.engine.ended)]
        assert len({request.id for request in places}) == len(places)
        for request in (*state.waiting, *(each.request for each in self.engine.ended)):
            assert not request.block_table
            assert request.slot is None

    @invariant()
    def a_batch_keeps_to_its_budget_and_has_nobody_twice(self) -> None:
        batch = self.engine.state.batch
        scheduled = [row.request.id for row in batch.rows]
        assert len(set(scheduled)) == len(scheduled) <= self.config.max_num_seqs
        assert sum(row.num_tokens for row in batch.rows) == batch.num_batched_tokens
        assert batch.num_batched_tokens <= self.config.max_num_batched_tokens

    @invariant()
    def who_came_first_is_admitted_first_where_that_is_promised(self) -> None:
        admitted = [row["request"] for row in self.rows.of("lifecycle", event="admit")]
        arrived = [row["request"] for row in self.rows.of("lifecycle", event="arrive")]
        in_order = getattr(self.scheduler, "order", "fcfs") == "fcfs"
        if in_order and not getattr(self.scheduler, "max_passes", 0):
            assert admitted == [request for request in arrived if request in set(admitted)]

    def teardown(self) -> None:
        self.engine.run()
        for request, event, *_ in self.engine.ended:
            known = self.rows.of("outputs", request=request.id, is_placeholder=False)
            assert [row["position"] for row in known] == list(range(request.num_generated))
            if event == "finish":
                wanted = min(request.max_tokens, request.eos_after or request.max_tokens)
                assert request.num_generated == wanted
            else:
                assert event == "reject"
        assert len(self.engine.ended) == len(self.asked)


@pytest.mark.parametrize("policy", SCHEDULERS, ids=lambda policy: policy.__name__)
def test_what_must_hold_holds_whatever_comes_and_whenever(policy: type[Scheduler]) -> None:
    machine = type("Driven", (Serving,), {"setups": setups_of(policy)})
    bounded = settings(max_examples=examples(50), stateful_step_count=25)
    run_state_machine_as_test(machine, settings=bounded)
