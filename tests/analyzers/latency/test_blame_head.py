"""Who stands behind the head of a queue waits for what the head lacks, and for as long."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.latency.blame import blame
from tests.analyzers.latency.test_blame import adds_up, of_request
from tests.analyzers.rows import Row, decision, event
from tests.traces import trace_of

STEPS: list[Row] = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(10)]


def waits(*requests: str) -> list[Row]:
    """Requests that wait from 0 to 90, in this order."""
    return [
        event(each, what, at) for each in requests for what, at in (("arrive", 0), ("abort", 90))
    ]


def deferred(request: str, at: int, resource: str | None, **more: Any) -> Row:
    return decision("request", request, "deferred", at, resource=resource, **more)


def test_its_cause_is_the_head_s_own_from_when_on_and_as_long_as_that_held() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=waits("head", "next"),
        decisions=[
            deferred("head", 0, "token-budget"), deferred("next", 0, "queue", holder="head"),
            deferred("head", 30, "kv-block"), deferred("head", 40, "kv-block"),
            deferred("head", 70, "seat"),
        ],
    )  # fmt: skip

    blamed = blame(trace)

    assert of_request(blamed, "next") == {"no-budget": 30, "no-blocks": 40, "no-seat": 20}
    assert of_request(blamed, "next") == of_request(blamed, "head")
    assert adds_up(blamed)


def test_it_stays_the_head_where_nothing_is_told_of_what_that_lacked() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=waits("head", "next"),
        decisions=[deferred("next", 0, "queue", holder="head"), deferred("head", 50, "slot")],
    )

    assert of_request(blame(trace), "next") == {"head": 50, "no-seat": 40}


def test_what_a_head_lacked_is_nobody_s_reason_once_it_was_let_in() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=[*waits("head", "next"), event("head", "admit", 40)],
        decisions=[deferred("head", 0, "kv-block"), deferred("next", 0, "queue", holder="head")],
    )

    assert of_request(blame(trace), "next") == {"no-blocks": 40, "head": 50}


def test_who_is_further_behind_than_is_told_waits_for_the_head_that_was_named_last() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=[*waits("a", "b", "far"), event("a", "admit", 40)],
        decisions=[
            deferred("a", 0, "kv-block"), deferred("b", 10, "queue", holder="a"),
            deferred("b", 40, "token-budget"), deferred("c", 40, "queue", holder="b"),
        ],
    )  # fmt: skip

    assert of_request(blame(trace), "far") == {"head": 10, "no-blocks": 30, "no-budget": 50}


def test_who_was_not_ready_at_the_head_kept_the_others_waiting_for_that() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=waits("head", "next"),
        decisions=[
            deferred("head", 0, None, reason="its grammar is compiled"),
            deferred("next", 0, "queue", holder="head"),
        ],
    )

    assert of_request(blame(trace), "next") == {"parked": 90}


def test_one_request_alone_is_blamed_as_among_all() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=waits("head", "next"),
        decisions=[deferred("head", 0, "kv-block"), deferred("next", 0, "queue", holder="head")],
    )

    alone = blame(trace, "next")

    assert alone.requests["request"].to_list() == ["next"]
    assert of_request(alone, "next") == of_request(blame(trace), "next") == {"no-blocks": 90}


def test_heads_of_one_name_on_two_ranks_are_two() -> None:
    rows = waits("head", "next")
    trace = trace_of(
        lifecycle=[{**row, "rank": rank} for rank in (0, 1) for row in rows],
        decisions=[
            {**row, "rank": rank}
            for rank, lacked in ((0, "kv-block"), (1, "seat"))
            for row in (deferred("head", 0, lacked), deferred("next", 0, "queue", holder="head"))
        ],
    )

    by_rank = dict(blame(trace).intervals.select("rank", "cause").unique().rows())

    assert by_rank == {0: "no-blocks", 1: "no-seat"}


def test_a_chunk_that_took_the_head_s_budget_took_it_from_those_behind_as_well() -> None:
    chunk = {"request": "long", "phase": "prefill", "num_tokens": 8, "is_final_chunk": False}
    trace = trace_of(
        steps=STEPS,
        batch_rows=[{**chunk, "step": 0, "ts_ns": 0}],
        lifecycle=waits("head", "next"),
        decisions=[
            deferred("head", 0, "token-budget"), deferred("next", 0, "queue", holder="head"),
        ],
    )  # fmt: skip

    assert of_request(blame(trace), "next") == {"chunk": 10, "no-budget": 80}


def test_of_two_decisions_of_one_moment_the_one_that_was_recorded_last_holds() -> None:
    requests = [f"r{n}" for n in range(50)]
    twice = [deferred(each, 0, lacks) for each in requests for lacks in ("kv-block", "bucket")]
    trace = trace_of(steps=STEPS, lifecycle=waits(*requests), decisions=twice)

    assert {each.cause.name for each in blame(trace).totals()} == {"bucket"}
