"""What time goes to, cause by cause: being parked, a chunk, a collective, nothing known."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.latency.blame import blame
from stepscope.analyzers.latency.causes import BY_NAME, OF_RESOURCE, PARKED
from stepscope.ingest.schema import NOT_READY, WHAT_BLOCKS
from stepscope.ingest.trace import Trace
from tests.analyzers.latency.test_blame import of_request
from tests.analyzers.rows import Row, decision, event, part
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


def test_time_without_a_budget_is_behind_a_chunk_where_a_chunk_took_it() -> None:
    chunk = {"request": "long", "phase": "prefill", "num_tokens": 8, "is_final_chunk": False}
    trace = trace_of(
        steps=[
            {"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "prefill"},
            {"step": 2, "ts_ns": 10, "dur_ns": 5, "kind": "decode"},
        ],
        batch_rows=[{**chunk, "step": 1, "ts_ns": 0}],
        lifecycle=[event("short", "arrive", 0), event("short", "abort", 15)],
        decisions=[decision("request", "short", "deferred", 0, resource="token-budget")],
    )

    assert of_request(blame(trace), "short") == {"chunk": 10, "no-budget": 5}


@looped("steps", [[], [{"step": 1, "ts_ns": None, "dur_ns": 10, "kind": "prefill"}]])
def test_without_times_of_steps_it_is_unknown_whether_a_chunk_took_the_budget(
    steps: list[Row],
) -> None:
    chunk = {"request": "long", "phase": "prefill", "num_tokens": 8, "is_final_chunk": False}
    trace = trace_of(
        steps=steps,
        batch_rows=[
            {**chunk, "step": 1, "ts_ns": 0},
            {**chunk, "step": 2, "ts_ns": 10, "is_final_chunk": True},
        ],
        lifecycle=[event("short", "arrive", 0), event("short", "abort", 15)],
        decisions=[decision("request", "short", "deferred", 0, resource="token-budget")],
    )

    spent = of_request(blame(trace), "short")

    assert spent.get("unknown", 0) > 0
    assert "chunk" not in spent


STEPS = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(6)]


def test_who_was_not_ready_was_parked_until_it_was_let_in() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=[event("r", "arrive", 0), event("r", "admit", 40), event("r", "finish", 40)],
        decisions=[
            decision("request", "r", "deferred", 0, reason="its grammar is compiled"),
            decision("request", "other", "deferred", 0, resource="kv-block"),
        ],
    )

    assert of_request(blame(trace), "r") == {"parked": 40}


def test_where_no_decision_names_a_resource_nobody_is_said_to_be_not_ready() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=[event("r", "arrive", 0), event("r", "admit", 40), event("r", "finish", 40)],
        decisions=[decision("request", "r", "deferred", 0, reason="too few KV blocks")],
    )

    assert of_request(blame(trace), "r") == {"other": 40}
    assert any(note.startswith("no decision names what was short") for note in blame(trace).notes)


def test_who_is_ready_and_not_noticed_is_parked_until_it_is_said_to_be_noticed() -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=[
            event("r", "arrive", 0), event("r", "ready", 15), event("r", "defer", 30),
            event("r", "abort", 50),
        ],
        decisions=[decision("request", "r", "deferred", 30, resource="kv-block", reason="few")],
    )  # fmt: skip

    assert of_request(blame(trace), "r") == {"unknown": 15, "parked": 15, "no-blocks": 20}


@slow
@looped("word", [w for w in WHAT_BLOCKS if w not in {"core-group", "core"}])
def test_whatever_blocks_a_request_is_a_cause_of_its_latency(word: str) -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=[event("r", "arrive", 0), event("r", "abort", 40)],
        decisions=[decision("request", "r", "deferred", 0, resource=word)],
    )

    assert of_request(blame(trace), "r") == {OF_RESOURCE[word]: 40}


@looped("word", NOT_READY)
def test_what_a_request_was_not_ready_for_is_told_by_its_name(word: str) -> None:
    assert BY_NAME[OF_RESOURCE[word]].group == PARKED


@looped(
    "more",
    [
        pytest.param({"resource": "a rack", "reason": "no rack is free"}, id="its own resource"),
        pytest.param({}, id="nothing is told"),
    ],
)
def test_who_was_put_off_for_an_engines_own_reason_was_not_parked(more: dict[str, str]) -> None:
    trace = trace_of(
        steps=STEPS,
        lifecycle=[event("r", "arrive", 0), event("r", "abort", 40)],
        decisions=[decision("request", "r", "deferred", 0, **more)],
    )

    assert of_request(blame(trace), "r") == {"other": 40}


def test_a_collective_counts_as_far_as_no_core_computes_meanwhile() -> None:
    trace = _one_decode(
        core_spans=[part(1, 0, 2, 6)],
        collectives=[{"step": 1, "ts_ns": 4, "dur_ns": 4, "ordinal": 0, "op": "all_reduce"}],
    )

    spent = of_request(blame(trace), "r")

    assert spent == {"decode": 4, "communication": 2, "dispatch": 4}


def test_a_device_of_which_nothing_is_known_is_not_blamed() -> None:
    trace = _one_decode(core_spans=[part(1, 0, 50, 60)])

    assert of_request(blame(trace), "r") == {"decode": 10}


def test_time_until_the_first_token_is_told_apart() -> None:
    trace = _one_decode(first_token=4)

    blamed = blame(trace)

    assert blamed.requests["first_token_ns"].to_list() == [4]
    assert blamed.to_first_token["decode_ns"].to_list() == [4]


def test_an_unexplained_absence_is_unknown_and_the_note_says_what_is_missing() -> None:
    trace = trace_of(
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "decode"}],
        lifecycle=[event("r", "arrive", 0), event("r", "admit", 0), event("r", "finish", 12)],
    )

    blamed = blame(trace)

    assert of_request(blamed, "r") == {"unknown": 10, "idle": 2}
    assert any("no decisions" in note for note in blamed.notes)


def _one_decode(first_token: int | None = None, **tables: Any) -> Trace:
    life = [event("r", "arrive", 0), event("r", "admit", 0), event("r", "finish", 10)]
    if first_token is not None:
        life.append(event("r", "first-token", first_token))
    return trace_of(
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "decode"}],
        batch_rows=[{"step": 1, "ts_ns": 0, "request": "r", "phase": "decode", "num_tokens": 1}],
        lifecycle=life,
        **tables,
    )


def test_of_two_batches_at_the_very_same_time_a_request_is_in_the_later_one() -> None:
    prefill = {"step": 1, "ts_ns": 0, "dur_ns": 10, "kind": "prefill"}
    decode = {"step": 2, "ts_ns": 0, "dur_ns": 10, "kind": "decode"}

    for rows in ([prefill, decode], [decode, prefill]):
        totals = {each.cause.name: each.total_ns for each in blame(trace_of(steps=rows)).totals()}
        assert totals == {"decode": 10}


def test_who_stood_first_when_the_queue_was_sorted_waits_behind_nobody() -> None:
    lives = [event(name, "arrive", 0) for name in "abd"] + [
        event(name, "abort", 40) for name in "abd"
    ]
    behind = decision("request", "c", "deferred", 0, resource="queue", holder="d")
    order = [
        {"step": 1, "ts_ns": 10, "index": place, "request": name} for place, name in enumerate("ba")
    ]
    trace = trace_of(steps=STEPS, lifecycle=lives, decisions=[behind], queue_order=order)

    assert of_request(blame(trace), "a") == {"head": 40}
    assert of_request(blame(trace), "b") == {"head": 10, "unknown": 30}


def test_who_is_in_a_batch_that_was_formed_ahead_waits_for_the_one_before_to_end() -> None:
    row = {"phase": "prefill", "num_tokens": 4}
    trace = trace_of(
        steps=[
            {"step": 1, "ts_ns": 0, "dur_ns": 20, "formed_ns": 0, "kind": "prefill"},
            {"step": 2, "ts_ns": 20, "dur_ns": 10, "formed_ns": 5, "kind": "mixed"},
        ],
        batch_rows=[
            {**row, "step": 1, "ts_ns": 0, "request": "first"},
            {**row, "step": 2, "ts_ns": 5, "request": "first", "phase": "decode"},
            {**row, "step": 2, "ts_ns": 5, "request": "second"},
        ],
        lifecycle=[
            event("first", "arrive", 0), event("first", "admit", 0), event("first", "finish", 30),
            event("second", "arrive", 5), event("second", "admit", 5),
            event("second", "finish", 30),
        ],
    )  # fmt: skip

    blamed = blame(trace)

    assert of_request(blamed, "second") == {"formed": 15, "prefill": 10}
    assert of_request(blamed, "first") == {"prefill": 20, "decode": 10}
