"""The `slots` scheduler over the engine: who gets which slot when, and what is left at the end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepscope.engine.config import EngineConfig
from stepscope.engine.plan import Action, Admit, PlanRefused, Run
from stepscope.engine.schedulers.slotted import Slotted
from stepscope.engine.serving.engine import Engine
from stepscope.engine.state import State
from stepscope.engine.workloads.workload import RequestSpec
from stepscope.ingest.errors import ConfigError
from tests.engine.rows import Rows
from tests.engine.small_engines import request, serve
from tests.engine.state_of_rows import state_at
from tests.tiers import examples

Snapshot = dict[str, Any]
SLOT_TOKENS = 12


def config(num_slots: int, *faults: str) -> EngineConfig:
    return EngineConfig(
        num_kv_blocks=0, num_slots=num_slots, max_num_seqs=num_slots,
        max_num_batched_tokens=num_slots * (SLOT_TOKENS + 1), faults=frozenset(faults),
    )  # fmt: skip


def run(specs: list[RequestSpec], num_slots: int, *faults: str) -> tuple[Engine, Rows]:
    return serve(specs, Slotted(SLOT_TOKENS), config(num_slots, *faults))


def test_the_first_in_the_queue_gets_the_lowest_slot_and_a_freed_one_goes_in_the_next_step() -> (
    None
):
    specs = [request("a", max_tokens=4), request("b", max_tokens=3), request("c"), request("d")]

    _, rows = run(specs, 2)

    claims = rows.of("allocations", op="claim")
    assert [(row["step"], row["owner"], row["id"], row["generation"]) for row in claims] == [
        (1, "a", 0, 0), (1, "b", 1, 0), (3, "c", 1, 1), (4, "d", 0, 1),
    ]  # fmt: skip


def test_an_admitted_requests_row_is_its_prompt_and_a_token_more_and_gives_two_tokens() -> None:
    _, rows = run([request("a", prompt_len=5, max_tokens=3)], 1)

    first, second = rows.of("batch_rows")
    assert (first["phase"], first["num_tokens"], first["is_final_chunk"]) == ("prefill", 6, True)
    assert (second["phase"], second["num_tokens"], second["num_computed"]) == ("decode", 1, 6)
    assert [row["step"] for row in rows.of("outputs")] == [1, 1, 2]


def test_a_first_token_can_already_end_a_request() -> None:
    engine, rows = run([request("a", max_tokens=1), request("b", max_tokens=1)], 1)

    assert [row["num_tokens"] for row in rows.of("batch_rows")] == [4, 4]
    assert [row["step"] for row in rows.of("lifecycle", event="finish")] == [1, 2]
    assert [each.request.num_generated for each in engine.ended] == [1, 1]


def test_an_end_comes_before_the_cap_is_told_as_one_and_is_the_last_token() -> None:
    specs = [request("a", max_tokens=6, eos_after=2), request("b", eos_after=4), request("c")]

    _, rows = run(specs, 3)

    ends = rows.of("lifecycle", event="finish")
    assert {row["request"]: (row["cause"], row["num_generated"]) for row in ends} == {
        "a": ("eos", 2), "b": ("eos", 4), "c": (None, 4),
    }  # fmt: skip
    told = [(row["request"], row["position"]) for row in rows.of("outputs", token=2)]
    assert told == [("a", 1), ("b", 3)]


def test_a_request_longer_than_a_slot_is_rejected_and_the_next_goes_on() -> None:
    engine, rows = run([request("long", prompt_len=10, max_tokens=4), request("b")], 1)

    assert [(each.request.id, each.event) for each in engine.ended] == [
        ("long", "reject"), ("b", "finish"),
    ]  # fmt: skip
    (rejected,) = rows.of("decisions", verdict="rejected")
    assert (rejected["resource"], rejected["needed"], rejected["available"]) == (
        "slot-tokens", 13, 12,
    )  # fmt: skip


def test_a_prompt_that_does_not_fit_the_step_waits_for_the_next() -> None:
    tight = EngineConfig(num_kv_blocks=0, num_slots=2, max_num_seqs=2, max_num_batched_tokens=8)

    _, rows = serve([request("a"), request("b"), request("x", prompt_len=9)], Slotted(), tight)

    assert [row["step"] for row in rows.of("lifecycle", event="admit")] == [1, 2]
    held, refused = rows.of("decisions", resource="token-budget")
    assert (held["subject"], held["needed"], held["available"]) == ("b", 5, 3)
    assert (refused["subject"], refused["verdict"]) == ("x", "rejected")


def test_who_waits_for_a_slot_is_told_once() -> None:
    _, rows = run([request("a"), request("b"), request("c")], 1)

    told = rows.of("decisions", resource="slot", verdict="deferred")
    assert [(row["subject"], row["step"], row["available"]) for row in told] == [
        ("b", 1, 0), ("c", 4, 0),
    ]  # fmt: skip


def test_an_engine_without_paged_kv_tells_of_no_blocks() -> None:
    engine, rows = run([request("a")], 1)

    assert "kv_blocks" not in engine.snapshot()
    assert {row["kv_blocks_total"] for row in rows.of("steps")} == {None}
    assert {row["resource"] for row in rows.of("allocations")} == {"slot"}


def test_knobs_and_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="at-once or when-drained"):
        Slotted(refill="never")
    with pytest.raises(ConfigError, match="num_kv_blocks is 0"):
        EngineConfig(num_kv_blocks=0, num_slots=0)


class Overfed(Slotted):
    """Asks for a token more than can be fed back."""

    def schedule(self, state: State) -> Any:
        request = state.waiting[0]
        actions: list[Action] = [Admit(request), Run(request, request.num_tokens, 1)]
        yield from actions


def test_a_row_that_feeds_tokens_back_has_to_reach_them() -> None:
    with pytest.raises(PlanRefused, match="not there to compute"):
        serve([request("a")], Overfed(SLOT_TOKENS), config(1))


_drawn = st.tuples(
    st.integers(0, 6), st.integers(1, 9), st.integers(1, 6), st.none() | st.integers(1, 6)
)
specs_of = st.lists(_drawn, min_size=1, max_size=12).map(
    lambda drawn: [
        RequestSpec(f"r{i:02d}", arrival_ns, prompt_len, max_tokens, eos_after=eos_after)
        for i, (arrival_ns, prompt_len, max_tokens, eos_after) in enumerate(drawn)
    ]
)


@given(specs_of, st.integers(1, 4))
@settings(max_examples=examples(80))
def test_every_request_that_fits_ends_with_min_of_cap_and_end_tokens(
    specs: list[RequestSpec], num_slots: int
) -> None:
    engine, rows = run(specs, num_slots)

    assert sorted(each.request.id for each in engine.ended) == [spec.id for spec in specs]
    for ended, event, *_ in engine.ended:
        fits = ended.max_kv_tokens <= SLOT_TOKENS
        wanted = min(ended.max_tokens, ended.eos_after or ended.max_tokens)
        assert event == ("finish" if fits else "reject")
        assert ended.num_generated == (wanted if fits else 0)
        assert len(rows.of("outputs", request=ended.id)) == ended.num_generated
    assert engine.state.slots
    assert engine.state.slots.num_free == num_slots


@given(specs_of, st.integers(1, 4))
@settings(max_examples=examples(80))
def test_requests_are_admitted_in_the_order_in_which_they_came(
    specs: list[RequestSpec], num_slots: int
) -> None:
    _, rows = run(specs, num_slots)

    arrived = [row["request"] for row in rows.of("lifecycle", event="arrive")]
    admitted = [row["request"] for row in rows.of("lifecycle", event="admit")]
    assert admitted == [request for request in arrived if request in set(admitted)]


@given(specs_of, st.integers(1, 4))
@settings(max_examples=examples(80))
def test_no_slot_is_idle_with_a_queue_and_each_has_one_owner_who_is_in_the_batch(
    specs: list[RequestSpec], num_slots: int
) -> None:
    held: list[Snapshot] = []
    serve(specs, Slotted(SLOT_TOKENS), config(num_slots), observer=held.append)

    for snapshot in held:
        owners = list(snapshot["slots"].values())
        assert len(set(owners)) == len(owners)
        assert sorted(owners) == sorted(snapshot["running"])
        scheduled = [request for request, _, _ in snapshot["batch"]]
        assert scheduled == [snapshot["slots"][slot] for slot in sorted(snapshot["slots"])]
        assert len(owners) == num_slots or not snapshot["waiting"]


@given(specs_of, st.integers(1, 4))
@settings(max_examples=examples(40))
def test_everybody_who_waits_has_been_told_what_for(
    specs: list[RequestSpec], num_slots: int
) -> None:
    held: list[Snapshot] = []
    _, rows = serve(specs, Slotted(SLOT_TOKENS), config(num_slots), observer=held.append)

    for snapshot in held:
        for waiting in snapshot["waiting"]:
            told = rows.of("decisions", subject=waiting)
            assert [row for row in told if row["ts_ns"] <= snapshot["ts_ns"]]


@given(specs_of, st.integers(1, 4), st.sampled_from(["", "refill-when-drained"]))
@settings(max_examples=examples(60))
def test_the_rows_alone_tell_the_state_at_every_step(
    specs: list[RequestSpec], num_slots: int, fault: str
) -> None:
    faults = frozenset({fault} - {""})
    held: list[Snapshot] = []
    scheduler = Slotted(SLOT_TOKENS).with_faults(faults)
    _, rows = serve(specs, scheduler, config(num_slots, *faults), observer=held.append)

    told = [state_at(rows, snapshot["step"], has_slots=True, has_blocks=False) for snapshot in held]
    assert told == held
