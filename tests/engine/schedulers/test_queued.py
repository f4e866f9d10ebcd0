"""The waiting loops of serving engines: who is looked at, who is let in, and what stops them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stepscope.engine.config import EngineConfig
from stepscope.engine.plan import Load, PlanRefused, Promote
from stepscope.engine.requests.request import Request
from stepscope.engine.schedulers.queued import Queued
from stepscope.ingest.errors import ConfigError
from tests.engine.rows import Rows
from tests.engine.small_engines import request, serve

CONFIG = EngineConfig(
    num_kv_blocks=64, block_size=2, max_num_batched_tokens=8, max_num_seqs=4, idle_ns=1,
    max_idle_steps=20, async_dependencies=True,
)  # fmt: skip


def served(*specs: Any, fault: str | None = None, knobs: Any = None, **config: Any) -> Rows:
    faults = frozenset([fault] if fault else [])
    scheduler = Queued(**(knobs or {})).with_faults(faults)
    return serve(specs, scheduler, replace(CONFIG, faults=faults, **config))[1]


def kinds(rows: Rows) -> str:
    """Each step by its first letter: p, m, d or i."""
    return "".join(row["kind"][0] for row in rows.of("steps"))


def when(rows: Rows, name: str, event: str) -> list[int]:
    return [row["step"] for row in rows.of("lifecycle", request=name, event=event)]


STREAM = [request(f"r{n}", 8, 2, arrival_ns=n) for n in range(12)]


def test_prompts_that_always_go_first_leave_decodes_the_end() -> None:
    knobs = {"prefill_first": True, "decode_rounds": 1}

    assert kinds(served(*STREAM, knobs=knobs, max_num_seqs=8)) == "pd" * 12
    assert kinds(served(*STREAM, knobs=knobs, fault="prompts-always-first", max_num_seqs=8)) == (
        "ppppppppdppppd"
    )


@pytest.mark.parametrize(
    ("max_prefills", "steps"), [(1, "pd" * 12), (2, "ppd" * 6), (3, "pppd" * 4)]
)
def test_after_so_many_steps_with_prompts_one_is_the_decodes(max_prefills: int, steps: str) -> None:
    knobs = {"prefill_first": True, "max_prefills": max_prefills}

    assert kinds(served(*STREAM, knobs=knobs, max_num_seqs=8)) == steps


def test_a_prompt_in_the_middle_of_its_chunks_goes_on_before_the_decodes_turn() -> None:
    knobs = {"prefill_first": True, "max_prefills": 1}

    steps = kinds(served(*STREAM, knobs=knobs, max_num_seqs=8, max_num_batched_tokens=12))

    assert steps.startswith("pdppdppd")  # every other step begins one and leaves it in the middle


def test_who_waits_while_it_is_the_decodes_turn_is_told_so() -> None:
    rows = served(*STREAM[:2], knobs={"prefill_first": True, "decode_rounds": 1})

    told = rows.of("decisions", subject="r1")
    assert (told[0]["resource"], told[0]["reason"]) == ("phase", "it is the decodes' turn")


PROMPTS = [request(f"r{n}", 12, 6) for n in range(4)]


def test_a_chunk_that_counts_twice_leaves_a_running_slot_free_until_somebody_ends() -> None:
    knobs = {"prefill_first": True}
    sound = served(*PROMPTS, knobs=knobs)
    faulty = served(*PROMPTS, knobs=knobs, fault="full-since-the-last-chunk")

    assert max(when(sound, "r3", "admit")) < min(when(sound, "r0", "finish"))
    assert when(faulty, "r3", "admit") == [min(when(faulty, "r0", "finish")) + 1]
    (told,) = [row for row in faulty.of("decisions", subject="r3") if row["resource"] == "seat"]
    assert (told["needed"], told["available"]) == (1, 0)
    assert [row["num_running"] for row in faulty.of("steps")].count(3) > 5


NOT_READY = [
    request("long", 80, 1),
    request("json", 2, 2, arrival_ns=1, prepare_ns=3),
    request("wrong", 2, 2, arrival_ns=1, prepare_ns=3, prepare_fails=True),
]


def test_who_is_ready_is_promoted_in_the_next_step_though_the_budget_is_spent() -> None:
    rows = served(*NOT_READY)

    (ready,) = rows.of("lifecycle", request="json", event="ready")
    assert ready["ts_ns"] == 4
    assert when(rows, "json", "defer") == when(rows, "wrong", "reject") == [5]
    assert rows.of("lifecycle", request="wrong", event="reject")[0]["cause"] == (
        "its grammar does not compile"
    )


def test_a_loop_that_ends_with_the_budget_promotes_nobody_while_one_prompt_runs() -> None:
    rows = served(*NOT_READY, fault="ready-not-looked-at")

    assert when(rows, "json", "ready") == [4]
    assert when(rows, "json", "defer") == when(rows, "wrong", "reject") == [11]
    assert when(rows, "json", "admit") == when(served(*NOT_READY), "json", "admit") == [11]


def test_who_is_skipped_is_no_obstacle_to_those_behind_and_lacks_nothing() -> None:
    rows = served(request("json", 2, 2, prepare_ns=9), request("plain", 2, 2))

    assert when(rows, "plain", "admit") == [1]
    (told, *_) = rows.of("decisions", subject="json")
    assert (told["reason"], told["resource"]) == ("its grammar is being compiled", None)


HEAVY = [
    request("first", 20, 8),
    request("heavy", 40, 2, arrival_ns=1),
    *(request(f"s{n}", 4, 3 + n % 2, arrival_ns=2) for n in range(8)),
]
POOL: dict[str, Any] = {"num_kv_blocks": 24, "max_num_batched_tokens": 64, "max_num_seqs": 12}


def num_before(rows: Rows) -> int:
    """How many small ones were let in before the heavy one."""
    (heavy,) = when(rows, "heavy", "admit")
    return sum(min(when(rows, f"s{n}", "admit")) < heavy for n in range(8))


def test_a_head_that_lacks_blocks_is_passed_so_often_and_no_more() -> None:
    bound = {"max_passes": 3}
    assert num_before(served(*HEAVY, knobs=bound, **POOL)) == 3
    assert num_before(served(*HEAVY, knobs=bound, fault="blocked-head-holds-all", **POOL)) == 0
    assert num_before(served(*HEAVY, knobs=bound, fault="passed-without-bound", **POOL)) == 8


HALF = [request(f"r{n}", 20, 2, prepare_ns=2, remote_tokens=16) for n in range(2)]
HALVES: dict[str, Any] = {"num_kv_blocks": 16}


def test_two_with_half_of_the_pool_each_stand_for_ever() -> None:
    rows = served(*HALF, fault="half-the-pool-each", **HALVES)

    assert kinds(rows) == "i" * 21
    assert len(rows.of("allocations", op="claim")) == 16
    assert (when(rows, "r0", "defer"), when(rows, "r1", "defer")) == ([3], [])
    (lacks,) = rows.of("decisions", subject="r0", resource="kv-block")
    assert (lacks["needed"], lacks["available"]) == (2, 0)


def test_blocks_for_what_comes_from_elsewhere_wait_for_those_who_have_begun() -> None:
    rows = served(*HALF, **HALVES)

    assert len(rows.of("lifecycle", event="finish")) == 2
    (told, *_) = rows.of("decisions", subject="r1", resource="kv-block")
    assert (told["needed"], told["available"]) == (10, 6)
    assert rows.of("lifecycle", event="preempt") == []


def test_a_holder_that_waits_gives_way_where_nobody_runs() -> None:
    rows = served(*HALF, knobs={"loads": "lateral"}, **HALVES)

    (taken,) = rows.of("lifecycle", event="preempt")
    assert (taken["request"], taken["by_request"], taken["queue_index"]) == ("r1", "r0", 1)
    assert len(rows.of("lifecycle", event="finish")) == 2


def test_what_came_from_elsewhere_is_not_computed() -> None:
    rows = served(HALF[0])

    first, second = rows.of("batch_rows")
    assert (first["num_computed"], first["num_cached"], first["num_tokens"]) == (16, 16, 4)
    assert second["phase"] == "decode"


@pytest.mark.parametrize("fault", [None, "never-fits-and-waits"])
def test_what_can_never_fit_is_turned_away_or_tried_in_every_step(fault: str | None) -> None:
    specs = [request("long", 200, 2), request("short", 4, 2)]
    rows = served(*specs, fault=fault, knobs={"max_passes": 8})

    if fault:
        (told,) = rows.of("decisions", subject="long")
        assert (told["verdict"], told["needed"], told["available"]) == ("deferred", 100, 64)
        assert kinds(rows) == "i" * 21
    else:
        assert when(rows, "long", "reject") == [1]
        assert when(rows, "short", "admit") == [1]


def test_engines_that_do_not_skip_serve_such_requests_like_any_other() -> None:
    rows = served(*NOT_READY[:2], async_dependencies=False)

    assert len(rows.of("lifecycle", event="finish")) == 2
    assert rows.of("lifecycle", event="ready") == []


def test_the_newest_gives_way_to_a_decode_that_lacks_blocks() -> None:
    rows = served(
        request("a", 6, 6), request("b", 6, 6), num_kv_blocks=7, max_num_batched_tokens=16
    )

    assert {row["request"] for row in rows.of("lifecycle", event="preempt")} == {"b"}
    assert len(rows.of("lifecycle", event="finish")) == 2


@pytest.mark.parametrize("knobs", [{"loads": "all"}, {"max_passes": -2}])
def test_a_knob_that_is_not_known_is_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Queued(**knobs)


@pytest.mark.parametrize("action", [Promote, Load])
def test_the_engine_refuses_what_is_not_due(action: Any) -> None:
    class Hasty(Queued):
        def schedule(self, state: Any) -> Any:
            waiting: Request = state.waiting[0]
            yield action(waiting)

    with pytest.raises(PlanRefused, match="json"):
        serve([request("json", 2, 2, prepare_ns=9)], Hasty(), CONFIG)


@pytest.mark.parametrize("wrong", [{"remote_tokens": 4}, {"remote_tokens": -1}, {"prepare_ns": -1}])
def test_a_request_whose_prompt_would_not_be_computed_at_all_is_refused(
    wrong: dict[str, int],
) -> None:
    with pytest.raises(ConfigError, match="request a: prepared in"):
        request("a", 4, **wrong)
