from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import pytest

from stepscope.engine.config import EngineConfig
from stepscope.engine.faults import FAULTS
from stepscope.engine.schedulers.bucketed import FAULTY_KNOBS, Bucketed
from stepscope.engine.workloads.workload import RequestSpec
from stepscope.ingest.errors import ConfigError
from tests.engine.rows import Rows
from tests.engine.small_engines import request, serve

# `old` has decoded once when `young` comes, so the two have different lengths.
OLD_AND_YOUNG = [request("old", 6, 6), request("young", 2, 6, arrival_ns=2)]
BUCKETED = Bucketed(completions="bucketed")
ROOMY = EngineConfig(num_kv_blocks=32, block_size=2)


def scheduled(rows: Rows, step: int) -> list[str]:
    return [row["request"] for row in rows.of("batch_rows", step=step)]


def test_prompts_go_before_decodes() -> None:
    _, rows = serve(OLD_AND_YOUNG, config=ROOMY)
    assert scheduled(rows, 2) == ["old"]
    assert scheduled(rows, 3) == ["young"]
    (told,) = rows.of("decisions", subject="old", step=3)
    assert (told["resource"], told["instead"]) == ("phase", "prefill")


def test_completions_of_any_length_run_together_as_a_decode_is_one_token() -> None:
    _, rows = serve(OLD_AND_YOUNG, config=ROOMY)
    assert scheduled(rows, 4) == ["old", "young"]
    assert not rows.of("decisions", step=4)


def test_prompts_of_two_lengths_do_not_share_a_step_though_completions_do() -> None:
    _, rows = serve([request("long", 8, 2), request("short", 2, 2)], config=ROOMY)
    assert [scheduled(rows, step) for step in (1, 2, 3)] == [["long"], ["short"], ["long", "short"]]


def test_the_bucket_of_the_oldest_request_runs_and_the_others_keep_their_blocks() -> None:
    _, rows = serve(OLD_AND_YOUNG, BUCKETED, ROOMY)
    assert scheduled(rows, 4) == ["old"]
    (told,) = rows.of("decisions", subject="young", step=4)
    assert told["verdict"] == "deferred"
    assert (told["resource"], told["holder"], told["instead"]) == ("bucket", "old", "len=8 text")
    assert not rows.of("lifecycle", event="preempt")


def test_the_shortest_bucket_lets_the_oldest_request_wait() -> None:
    _, rows = serve(OLD_AND_YOUNG, Bucketed(completions="bucketed", bucket="shortest"), ROOMY)
    assert scheduled(rows, 4) == ["young"]
    chosen, passed_over = rows.of("decisions", subject_kind="bucket", step=4)
    assert (passed_over["verdict"], passed_over["holder"]) == ("passed-over", "old")
    assert passed_over["instead"] == chosen["subject"] == "len=3 text"


def test_preempting_other_buckets_throws_work_away_though_blocks_are_free() -> None:
    _, rows = serve(OLD_AND_YOUNG, replace(BUCKETED, incompatible="preempt"), ROOMY)
    (told,) = rows.of("decisions", verdict="preempted", step=4)
    assert (told["subject"], told["holder"]) == ("young", "old")
    assert told["available"] >= told["needed"]
    assert rows.of("batch_rows", request="young", is_recompute=True)


# `image` comes when `text` decodes already, so that both are prefilled and meet in a decode.
TEXT_AND_IMAGE = [request("text", 4, 6), request("image", 4, 4, arrival_ns=2, modality="image")]


def test_images_and_text_share_neither_a_prefill_nor_a_decode() -> None:
    _, rows = serve([request("text"), request("image", modality="image")], config=ROOMY)
    assert [scheduled(rows, step) for step in (1, 2, 3)] == [["text"], ["image"], ["text"]]
    told = rows.of("decisions", subject="image", step=3)
    assert [(row["verdict"], row["instead"]) for row in told] == [("deferred", "len=any text")]


def test_completions_of_text_and_of_images_take_turns() -> None:
    engine, rows = serve(TEXT_AND_IMAGE, config=ROOMY)
    ran = [scheduled(rows, step) for step in range(4, 11)]
    assert ran == [["text"], ["image"]] * 3 + [["text"]]
    assert [each.request.id for each in engine.ended] == ["image", "text"]


def test_text_that_keeps_coming_leaves_older_text_and_images_their_turns() -> None:
    late = [request(f"late-{n}", 4, 1, arrival_ns=6 + 2 * n) for n in range(3)]
    _, rows = serve([*TEXT_AND_IMAGE, *late], config=ROOMY)
    ran = [*chain.from_iterable(scheduled(rows, step) for step in range(6, 13))]
    assert ran == ["text", "late-0", "image", "late-1", "text", "late-2", "image"]


def test_who_is_deferred_for_its_modality_keeps_its_blocks() -> None:
    engine, rows = serve(TEXT_AND_IMAGE, config=ROOMY)
    assert {each.event for each in engine.ended} == {"finish"}
    assert not rows.of("lifecycle", event="preempt")


@pytest.mark.parametrize("arrival_ns", [0, 2], ids=["waiting", "running"])
def test_images_put_back_on_the_queue_that_text_is_drained_from_spin_until_they_are_stopped(
    arrival_ns: int,
) -> None:
    asked = [request("text", 4, 6), request("image", 4, 4, arrival_ns, modality="image")]
    engine, rows = serve(asked, Bucketed(incompatible="requeue"), ROOMY)
    last = engine.state.step - 1
    assert len(rows.of("decisions", subject="image", verdict="put-back", step=last)) > 100
    assert {each.event for each in engine.ended} == {"abort"}


def test_text_behind_an_image_is_let_in_before_it_when_that_is_put_back() -> None:
    asked = [request("a"), request("image", modality="image"), request("b")]
    _, rows = serve(asked, Bucketed(incompatible="requeue"), ROOMY)
    assert [row["request"] for row in rows.of("lifecycle", event="admit")] == ["a", "b"]


# Three requests fill six blocks; the first of them to grow needs a seventh.
CROWDED = EngineConfig(num_kv_blocks=6, block_size=2)
CROWD = [request(name, 4, 4) for name in ("a", "b", "c")]


@pytest.mark.parametrize(("order", "victim"), [("fcfs", "c"), ("newest-first", "a")])
def test_when_blocks_run_out_the_last_in_order_is_preempted(order: str, victim: str) -> None:
    _, rows = serve(CROWD, Bucketed(order=order), CROWDED)
    told, *_ = rows.of("decisions", verdict="preempted")
    assert (told["step"], told["subject"]) == (2, victim)
    assert told["needed"] > told["available"]


# `wide` fits when two of the three others are gone, and not when one is.
def small(name: str, **more: Any) -> RequestSpec:
    return request(name, 2, 9, **more)


FULL = EngineConfig(num_kv_blocks=10, block_size=2, max_num_seqs=8)
WAITER = [*(small(name) for name in "abc"), request("wide", 16, 1, arrival_ns=2, priority=-1)]


def test_a_victim_comes_back_when_the_others_have_room_to_grow_beside_it() -> None:
    crowd = [request("a", 4, 8), request("b", 4, 3), request("c", 4, 4)]

    _, rows = serve(crowd, Bucketed(), CROWDED)

    (held,) = (row for row in rows.of("decisions", subject="c", step=4) if row["needed"])
    assert (held["verdict"], held["needed"], held["available"]) == ("deferred", 4, 3)
    assert len(rows.of("lifecycle", event="preempt")) == 1
    _, rows = serve(crowd, Bucketed(victims="one"), CROWDED)
    assert len(rows.of("lifecycle", event="preempt")) == 2


def test_no_victim_is_held_for_more_blocks_than_there_are() -> None:
    crowd = [request("a", 1, 8), request("b", 9, 3)]

    _, rows = serve(crowd, Bucketed(), CROWDED)

    (held, *_) = (row for row in rows.of("decisions", verdict="deferred") if row["needed"])
    assert (held["subject"], held["needed"]) == ("b", CROWDED.num_kv_blocks)
    assert {row["request"] for row in rows.of("lifecycle", event="finish")} == {"a", "b"}


def test_a_victim_that_was_held_long_comes_back_as_soon_as_it_fits() -> None:
    crowd = [request("a", 4, 8), request("b", 4, 3), request("c", 4, 4)]

    _, rows = serve(crowd, Bucketed(patience=1), CROWDED)

    (back,) = rows.of("lifecycle", event="resume")[:1]
    assert (back["request"], back["step"]) == ("c", 4)


def test_a_request_that_waited_long_gets_one_victim_and_is_then_ignored() -> None:
    _, rows = serve(WAITER, Bucketed(victims="one", nothing_fits="ignore", patience=1), FULL)
    (reject,) = rows.of("lifecycle", event="reject")
    assert (reject["request"], reject["cause"]) == ("wide", "ignored: too few KV blocks")
    assert len(rows.of("decisions", verdict="preempted", holder="wide")) == 1


def test_a_request_that_waited_long_gets_victims_of_lower_priority_until_it_fits() -> None:
    engine, rows = serve(WAITER, Bucketed(patience=1), FULL)
    victims = [row["subject"] for row in rows.of("decisions", holder="wide", verdict="preempted")]
    assert victims == ["c", "b"]
    assert {each.event for each in engine.ended} == {"finish"}


def test_nobody_is_preempted_for_a_request_that_would_not_fit_even_then() -> None:
    requests = [small("first"), *WAITER[:2], request("wide", 16, 1, arrival_ns=2)]
    _, rows = serve(requests, Bucketed(patience=1), FULL)
    assert not rows.of("decisions", holder="wide", verdict="preempted")
    (held, *_) = rows.of("decisions", subject="wide")
    assert (held["verdict"], held["resource"], held["needed"]) == ("deferred", "kv-block", 8)


@pytest.mark.parametrize(
    ("config", "resource"),
    [
        (EngineConfig(num_kv_blocks=4, block_size=2), "kv-block"),
        (EngineConfig(num_kv_blocks=99, max_num_batched_tokens=8, max_num_seqs=8), "token-budget"),
    ],
)
def test_a_request_that_can_never_fit_is_rejected_at_once(
    config: EngineConfig, resource: str
) -> None:
    _, rows = serve([request("giant", 8, 2), request("small", 2, 2)], config=config)
    (told,) = rows.of("decisions", verdict="rejected")
    assert (told["subject"], told["resource"]) == ("giant", resource)
    assert told["needed"] > told["available"]
    assert rows.of("lifecycle", request="small", event="finish")


def test_running_slots_and_token_budget_are_named_when_they_run_out() -> None:
    config = EngineConfig(max_num_seqs=2, max_num_batched_tokens=8)
    _, rows = serve([request(name, 5, 3) for name in "abc"], config=config)
    told = {row["subject"]: row for row in rows.of("decisions", step=1)}
    assert (told["b"]["resource"], told["b"]["needed"], told["b"]["available"]) == (
        "token-budget", 5, 3,
    )  # fmt: skip
    assert (told["c"]["resource"], told["c"]["holder"]) == ("queue", "b")
    assert rows.of("decisions", subject="c", resource="seat")


def test_putting_the_incompatible_back_on_the_drained_queue_never_ends_and_is_stopped() -> None:
    engine, rows = serve(OLD_AND_YOUNG, replace(BUCKETED, incompatible="requeue"), ROOMY)
    assert {each.event for each in engine.ended} == {"abort"}
    assert len(rows.of("decisions", subject="young", verdict="put-back", step=4)) > 100
    assert "watchdog" in rows.of("lifecycle", event="abort")[0]["cause"]


def test_every_fault_of_the_scheduler_turns_a_knob_away_from_its_default() -> None:
    repaired = Bucketed()
    for fault in FAULTY_KNOBS:
        assert fault in {each.name for each in FAULTS}
        assert repaired.with_faults({fault}) != repaired
    assert repaired.with_faults(()) == repaired


def test_a_knob_that_does_not_exist_is_refused_with_its_choices() -> None:
    with pytest.raises(ConfigError, match="choose oldest or shortest"):
        Bucketed(bucket="longest")
