"""Slots that only cost time: what each operation takes on the clock, and the tokens it gives."""

from __future__ import annotations

import pytest

from stepscope.engine.batch import Batch, Row
from stepscope.engine.clock import VirtualClock
from stepscope.engine.executors.simulated import CostModel
from stepscope.engine.executors.slot_model import Priced, slot_of
from stepscope.engine.requests.request import EOS_TOKEN, Request

COST = CostModel(base_ns=1_000, prefill_token_ns=10, decode_row_ns=100, kv_token_ns=1)
NUM_SLOTS = 4


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def model(clock: VirtualClock) -> Priced:
    model = Priced(COST, NUM_SLOTS, bytes_per_ns=32)
    with model.step(Batch(), 1, clock):
        pass
    return model


def row(num_tokens: int, num_computed: int = 0, num_fed_back: int = 0, **state: int) -> Row:
    """A row of a request in slot 3 that ends its output with its third token."""
    request = Request("r", 0, prompt_len=8, max_tokens=9, eos_after=3)
    request.slot, request.num_generated = 3, state.get("num_generated", 0)
    return Row(request, "decode", num_tokens, num_computed, True, False, num_fed_back)


def test_a_copy_either_way_takes_a_nanosecond_for_each_32_bytes(
    model: Priced, clock: VirtualClock
) -> None:
    model.refresh(32 * 7 + 31)
    assert clock.now_ns() == 7

    model.commit(32 * 5)
    assert clock.now_ns() == 12


def test_a_prompt_costs_its_tokens_but_not_those_that_are_fed_back(
    model: Priced, clock: VirtualClock
) -> None:
    token, digest = model.prefill(row(num_tokens=8, num_fed_back=2), 3)

    assert clock.now_ns() == 1_000 + 10 * 6
    assert (token, digest) == (0, None)


def test_a_decode_costs_a_row_for_every_slot_and_the_kv_tokens_of_the_live_ones(
    model: Priced, clock: VirtualClock
) -> None:
    live = [row(num_tokens=1, num_computed=20), row(num_tokens=1, num_computed=30)]

    sampled = model.decode(live)

    assert clock.now_ns() == 1_000 + 100 * NUM_SLOTS + (21 + 31)
    assert sampled == [(0, None), (0, None)]


@pytest.mark.parametrize(("num_generated", "ends"), [(1, False), (2, True), (3, False)])
def test_the_token_that_ends_the_output_is_the_one_after_those_generated(
    model: Priced, num_generated: int, ends: bool
) -> None:
    expected = EOS_TOKEN if ends else 0

    assert model.prefill(row(8, num_generated=num_generated), 3)[0] == expected
    assert model.decode([row(1, 8, num_generated=num_generated)])[0][0] == expected


@pytest.mark.parametrize(("num_generated", "ends"), [(0, False), (1, True), (2, False)])
def test_a_decoded_token_counts_behind_one_that_is_fed_back(
    model: Priced, num_generated: int, ends: bool
) -> None:
    decoded = model.decode([row(1, 8, num_fed_back=1, num_generated=num_generated)])

    assert decoded[0][0] == (EOS_TOKEN if ends else 0)


def test_the_slot_of_a_row_is_that_of_its_request() -> None:
    assert slot_of(row(1)) == 3
