from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stepscope.engine.config import EngineConfig
from stepscope.engine.schedulers.paged import Paged
from stepscope.engine.workloads.workload import RequestSpec
from stepscope.ingest.errors import ConfigError
from tests.engine.rows import Rows
from tests.engine.small_engines import request, serve

CONFIG = EngineConfig(
    num_kv_blocks=64, block_size=2, max_num_batched_tokens=8, max_num_seqs=4
)  # fmt: skip


def batches(rows: Rows) -> list[list[str]]:
    """Each batch as `request:tokens`, decodes in capitals."""
    told: dict[int, list[str]] = {}
    for row in rows.of("batch_rows"):
        name = row["request"].upper() if row["phase"] == "decode" else row["request"]
        told.setdefault(row["step"], []).append(f"{name}:{row['num_tokens']}")
    return list(told.values())


def served(
    specs: list[RequestSpec], scheduler: Paged | None = None, **config: Any
) -> list[list[str]]:
    _, rows = serve(specs, scheduler or Paged(), replace(CONFIG, **config))
    return batches(rows)


def about(rows: Rows, subject: str) -> list[tuple[Any, ...]]:
    return [
        (row["step"], row["resource"], row["needed"], row["available"], row["holder"])
        for row in rows.of("decisions", subject=subject)
        if row["verdict"] != "admitted"
    ]


def test_a_long_prompt_runs_in_chunks_and_samples_after_the_last() -> None:
    _, rows = serve([request("a", 20, 2)], Paged(), CONFIG)
    assert batches(rows) == [["a:8"], ["a:8"], ["a:4"], ["A:1"]]
    assert [row["is_final_chunk"] for row in rows.of("batch_rows")] == [False, False, True, None]
    assert [row["step"] for row in rows.of("outputs")] == [3, 4]


def test_decodes_have_their_tokens_reserved_and_run_beside_prompts() -> None:
    _, rows = serve([request("a", 4, 4), request("b", 20, 1)], Paged(), CONFIG)
    assert batches(rows) == [["a:4", "b:4"], ["b:7", "A:1"], ["b:7", "A:1"], ["b:2", "A:1"]]
    assert [row["reserved_tokens"] for row in rows.of("steps")] == [0, 1, 1, 1]
    assert [row["kind"] for row in rows.of("steps")] == ["prefill", "mixed", "mixed", "mixed"]


def test_decodes_that_go_first_need_no_reserve_and_stand_first_in_the_batch() -> None:
    specs = [request("a", 4, 4), request("b", 20, 1)]
    _, rows = serve(specs, Paged(reserve=False, decodes_first=True), CONFIG)
    assert batches(rows) == [["a:4", "b:4"], ["A:1", "b:7"], ["A:1", "b:7"], ["A:1", "b:2"]]
    assert [row["reserved_tokens"] for row in rows.of("steps")] == [0, 0, 0, 0]


def test_a_prompt_that_gives_way_to_a_decode_is_not_run_in_the_same_step() -> None:
    specs = [request("a", 4, 8), request("b", 8, 1)]
    _, rows = serve(
        specs, Paged(decodes_first=True), replace(CONFIG, num_kv_blocks=6, max_num_batched_tokens=6)
    )
    (preempted,) = rows.of("lifecycle", event="preempt")
    assert preempted["request"] == "b"
    assert rows.of("batch_rows", step=preempted["step"], request="b") == []
    assert {row["request"] for row in rows.of("lifecycle", event="finish")} == {"a", "b"}


def test_without_a_reserve_prompts_take_the_budget_and_decodes_are_told_so() -> None:
    specs = [request("a", 4, 4), request("b", 20, 1)]
    _, rows = serve(specs, Paged(reserve=False), CONFIG)
    assert batches(rows) == [
        ["a:4", "b:4"],
        ["b:8"],
        [
            "b:8",
        ],
        ["A:1"],
        ["A:1"],
        ["A:1"],
    ]
    assert about(rows, "a") == [(2, "token-budget", 1, 0, "b")]


def test_with_mixing_off_decodes_wait_for_prompts() -> None:
    specs = [request("a", 4, 3), request("b", 6, 2)]
    _, rows = serve(specs, Paged(mixed=False), replace(CONFIG, max_num_batched_tokens=4))
    assert batches(rows) == [["a:4"], ["b:4"], ["b:2"], ["A:1", "B:1"], ["A:1"]]
    (told,) = rows.of("decisions", subject="a", verdict="deferred")
    assert (told["step"], told["resource"], told["instead"]) == (2, "phase", "prefill")


def test_a_threshold_caps_each_prompt_and_leaves_the_rest_to_the_next() -> None:
    told = served([request("a", 8, 1), request("b", 8, 1)], Paged(long_prefill_threshold=5))
    assert told == [["a:5", "b:3"], ["a:3", "b:5"]]


def test_the_first_that_does_not_fit_stops_the_admission_and_names_what_it_lacked() -> None:
    specs = [request("a", 4, 4), request("b", 6, 1), request("c", 1, 1)]
    _, rows = serve(specs, Paged(), replace(CONFIG, num_kv_blocks=4))
    assert batches(rows)[:2] == [["a:4"], ["A:1"]]
    assert about(rows, "b")[0] == (1, "kv-block", 3, 2, "a")
    assert about(rows, "c")[0] == (1, "queue", None, None, "b")
    admitted = [row["request"] for row in rows.of("lifecycle", event="admit")]
    assert admitted == ["a", "b", "c"]


def test_a_request_that_finds_every_running_slot_taken_is_told_who_sits_there_longest() -> None:
    specs = [request("a", 2, 2), request("b", 2, 2)]
    _, rows = serve(specs, Paged(), replace(CONFIG, max_num_seqs=1))
    assert about(rows, "b")[0] == (1, "seat", 1, 0, "a")


def test_the_newest_makes_room_and_computes_again_what_it_had() -> None:
    specs = [request("a", 4, 5), request("b", 4, 5)]
    _, rows = serve(specs, Paged(), replace(CONFIG, num_kv_blocks=4))
    (preempted,) = rows.of("decisions", verdict="preempted")
    assert (preempted["subject"], preempted["holder"], preempted["step"]) == ("b", "a", 2)
    assert preempted["needed"] > preempted["available"]
    again = rows.of("batch_rows", is_recompute=True)
    assert [(row["request"], row["num_tokens"]) for row in again] == [("b", 5)]
    assert [row["position"] for row in rows.of("outputs", request="b")] == [0, 1, 2, 3, 4]


def test_the_newest_gives_its_own_blocks_up_when_nobody_newer_has_any() -> None:
    specs = [request("a", 4, 5), request("b", 4, 5)]
    _, rows = serve(specs, Paged(), replace(CONFIG, num_kv_blocks=5))
    assert {
        (row["subject"], row["holder"]) for row in rows.of("decisions", verdict="preempted")
    } == {("b", "b")}


def test_the_least_important_is_preempted_before_the_newest() -> None:
    specs = [request("a", 2, 5), request("b", 2, 5, priority=1), request("c", 2, 5)]
    _, rows = serve(specs, Paged(), replace(CONFIG, num_kv_blocks=4))
    assert rows.of("decisions", verdict="preempted")[0]["subject"] == "b"


def test_the_most_important_is_served_first_where_that_is_the_order() -> None:
    specs = [request("a", 8, 1, priority=2), request("b", 8, 1), request("c", 8, 1, priority=1)]
    assert served(specs, Paged(order="priority")) == [["b:8"], ["c:8"], ["a:8"]]
    assert served(specs) == [["a:8"], ["b:8"], ["c:8"]]


def test_an_image_is_never_split_and_waits_for_a_step_that_holds_it() -> None:
    specs = [request("a", 4, 1), request("b", 6, 1, modality="image")]
    _, rows = serve(specs, Paged(long_prefill_threshold=5), CONFIG)
    assert batches(rows) == [["a:4"], ["b:6"]]
    assert about(rows, "b") == [(1, "token-budget", 6, 4, "a")]


def test_an_image_that_no_step_can_hold_is_dropped() -> None:
    engine, _ = serve([request("a", 9, 1, modality="image")], Paged(), CONFIG)
    assert [each.event for each in engine.ended] == ["reject"]


def test_drafts_are_counted_in_the_batch_and_the_accepted_ones_in_the_outputs() -> None:
    _, rows = serve([request("a", 2, 9)], Paged(mixed=False, mtp_k=2), CONFIG, acceptance=1.0)
    assert batches(rows) == [["a:2"], ["A:3"], ["A:3"], ["A:2"]]
    assert [row["num_draft"] for row in rows.of("batch_rows")] == [None, 2, 2, 1]
    assert [row["step"] for row in rows.of("outputs")] == [1, 2, 2, 2, 3, 3, 3, 4, 4]
    assert [row["value"] for row in rows.of("counters", track="drafts")] == [2, 2, 1]


def test_drafts_that_are_refused_are_computed_for_nothing() -> None:
    _, rows = serve([request("a", 2, 3)], Paged(mixed=False, mtp_k=2), CONFIG, acceptance=0.0)
    assert batches(rows) == [["a:2"], ["A:2"], ["A:1"]]
    assert [row["num_computed"] for row in rows.of("batch_rows")] == [0, 2, 3]


def test_mtp_with_mixed_batches_is_refused() -> None:
    with pytest.raises(ConfigError, match="MTP does not work with mixed batches"):
        Paged(mtp_k=1)
    assert Paged(mtp_k=1, faults=frozenset({"mtp-with-mixed"})).mtp_k == 1


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(ConfigError, match="choose fcfs or priority"):
        Paged(order="lifo")


# ── a budget below max_num_seqs ─────────────────────────────────────────────


def test_decodes_that_the_budget_leaves_out_are_carried_over_in_their_order() -> None:
    asked = [request(name, 1, 4) for name in "abc"]
    _, rows = serve(asked, Paged(), replace(CONFIG, max_num_batched_tokens=2))

    assert batches(rows) == [
        ["a:1", "b:1"], ["A:1", "B:1"], ["A:1", "B:1"], ["A:1", "B:1"], ["c:1"], ["C:1"], ["C:1"],
        ["C:1"],
    ]  # fmt: skip


def test_a_carried_over_decode_keeps_its_place_before_those_who_came_later() -> None:
    asked = [request("a", 1, 3), request("b", 1, 4), request("c", 2, 4), request("d", 1, 2)]
    plain = Paged(reserve=False)
    _, rows = serve(asked, plain, replace(CONFIG, max_num_batched_tokens=3))

    assert batches(rows)[:3] == [
        ["a:1", "b:1", "c:1"],
        ["c:1", "d:1", "A:1"],
        ["A:1", "B:1", "C:1"],
    ]
    assert batches(rows)[3:] == [["B:1", "C:1", "D:1"], ["B:1", "C:1"]]
    held = rows.of("decisions", resource="token-budget", needed=1, available=0)
    assert [(row["step"], row["subject"]) for row in held] == [(1, "d"), (2, "b"), (3, "d")]
