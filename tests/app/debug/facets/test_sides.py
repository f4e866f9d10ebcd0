"""Each side of a state is what the trace tells up to the position, else unknown."""

from __future__ import annotations

from typing import Any

from stepscope.app.debug.debugger import Debugger
from stepscope.app.debug.facets import FACETS
from stepscope.app.debug.facets.look import Look
from stepscope.ingest.trace import Trace
from tests.app.debug.small_traces import a_fight_for_a_block
from tests.looped import looped
from tests.tiers import slow
from tests.traces import trace_of


def rows(trace: Trace, name: str, place: str) -> list[dict[str, Any]] | None:
    """The rows of one side at a place; None where they are not recorded."""
    debugger = Debugger(trace)
    debugger.goto(place)
    found = {facet.name: facet for facet in FACETS}[name].at(Look.of(debugger))
    return None if found is None else found.to_dicts()


def of_steps(**tables: Any) -> Trace:
    """Two steps, at 100 and 200, and other tables beside them."""
    steps = [{"step": step, "ts_ns": 100 * step, "kind": "decode"} for step in (1, 2)]
    return trace_of(**{"steps": steps, **tables})


def test_who_waits_is_told_with_the_reason() -> None:
    waiting = rows(a_fight_for_a_block(), "waiting", "3")

    assert waiting
    assert [(row["request"], row["verdict"]) for row in waiting] == [("a", None), ("c", "deferred")]


def test_what_a_preemption_leaves_of_a_request_is_unknown() -> None:
    before, after = (rows(a_fight_for_a_block(), "requests", place) for place in ("2", "3"))
    assert before
    assert after

    assert [row["computed"] for row in before if row["request"] == "a"] == [12]
    assert [row["computed"] for row in after if row["request"] == "a"] == [None]


def test_the_budget_that_is_left_is_what_was_not_scheduled() -> None:
    step = {"step": 1, "ts_ns": 1, "kind": "decode", "token_budget": 10}
    told = trace_of(steps=[{**step, "num_prefill_tokens": 3, "num_decode_tokens": 4}])

    assert rows(told, "budget", "1") == [{"token_budget": 10, "num_tokens": 7, "left": 3}]
    assert rows(trace_of(steps=[{**step, "token_budget": None}]), "budget", "1") is None


def test_a_block_with_two_users_is_shared_until_one_gives_it_up() -> None:
    block = {"resource": "kv-block", "id": 1}
    trace = of_steps(
        allocations=[
            {**block, "ts_ns": 90, "op": "claim", "owner": "a"},
            {**block, "ts_ns": 95, "op": "share", "owner": "b"},
            {**block, "ts_ns": 150, "op": "release", "owner": "a"},
        ]
    )

    assert [row["owner"] for row in rows(trace, "sharers", "1") or []] == ["a", "b"]
    assert rows(trace, "sharers", "2") == []


def test_a_free_block_is_cached_until_it_is_evicted() -> None:
    block = {"resource": "kv-block", "id": 1, "owner": "a", "block_hash": "h"}
    trace = of_steps(
        allocations=[
            {**block, "ts_ns": 90, "op": "cache"},
            {**block, "ts_ns": 150, "op": "evict"},
        ]
    )

    assert rows(trace, "cached", "1") == [{"id": 1, "block_hash": "h"}]
    assert rows(trace, "cached", "2") == []


def test_a_slot_has_a_generation_and_the_tokens_that_lie_in_it() -> None:
    slot = {"resource": "slot", "id": 2, "op": "claim", "owner": "a", "generation": 7}
    row = {"request": "a", "phase": "decode", "num_tokens": 1, "num_computed": 9, "slot": 2}
    trace = of_steps(
        allocations=[{**slot, "ts_ns": 90}], batch_rows=[{**row, "step": 1, "ts_ns": 100}]
    )

    found = rows(trace, "slots", "1")

    assert found
    assert (found[0]["generation"], found[0]["num_tokens"]) == (7, 10)


def test_a_buffer_has_the_epoch_of_its_last_access() -> None:
    access = {"buffer": "kv", "stream": "s"}
    trace = of_steps(
        accesses=[
            {**access, "ts_ns": 50, "op": "write", "epoch": 1},
            {**access, "ts_ns": 150, "op": "write", "epoch": 2},
        ]
    )

    assert [row["epoch"] for row in rows(trace, "buffers", "1") or []] == [1]
    assert [row["epoch"] for row in rows(trace, "buffers", "2") or []] == [2]


def test_what_each_rank_enters_next_is_unknown_behind_its_last_collective() -> None:
    trace = of_steps(
        collectives=[
            {"rank": rank, "ts_ns": 110 + rank * 100, "ordinal": 4, "op": op, "group": "g"}
            for rank, op in ((0, "all_reduce"), (1, "all_gather"))
        ]
    )

    assert [row["op"] for row in rows(trace, "collectives", "1") or []] == [
        "all_reduce",
        "all_gather",
    ]
    assert [row["op"] for row in rows(trace, "collectives", "2") or []] == [None, "all_gather"]


def test_a_task_is_ready_until_all_its_blocks_were_given_to_cores() -> None:
    task = {"task": 1, "shape": "AIC", "num_blocks": 1, "ts_ns": 10, "ready_ns": 20}
    span = {"task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0, "thread": 3}
    trace = of_steps(
        tasks=[task], core_spans=[{**span, "dispatch_ns": 150, "ts_ns": 160, "end_ns": 170}]
    )

    assert [row["task"] for row in rows(trace, "ready", "1") or []] == [1]
    assert rows(trace, "ready", "2") == []
    assert [row["thread"] for row in rows(trace, "threads", "2") or []] == [3]


@slow
@looped("facet", FACETS, ids=lambda facet: facet.name)
def test_of_a_trace_of_steps_alone_no_side_is_empty(facet: Any) -> None:
    assert rows(of_steps(), facet.name, "2") is None
