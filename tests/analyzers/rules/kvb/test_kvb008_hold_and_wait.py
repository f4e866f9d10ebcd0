"""KVB008: requests hold KV blocks, wait for more, and none of them runs."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb008_hold_and_wait import HoldAndWait
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision
from tests.analyzers.serving_rows import decode, owned, step
from tests.looped import looped
from tests.traces import trace_of

NOTHING: dict[str, Any] = {"num_prefill_tokens": 0, "num_decode_tokens": 0, "num_waiting": 2}
IDLE = [step(n, "idle", **NOTHING, kv_blocks_total=7) for n in range(3, 13)]
HELD = [owned("claim", n, "a" if n < 4 else "b", 5) for n in range(7)]


def lacks(request: str, **more: Any) -> Row:
    short = {"resource": "kv-block", "needed": 1, "available": 0}
    return decision("request", request, "deferred", 30, **short) | more


def stuck(
    steps: list[Row], told: list[Row] | None = None, held: list[Row] | None = None
) -> list[Finding]:
    trace = trace_of(
        steps=[decode(1, 2), *steps],
        decisions=[lacks("a"), lacks("b")] if told is None else told,
        allocations=HELD if held is None else held,
    )
    return HoldAndWait().check(trace)


def test_two_requests_with_all_blocks_between_them_that_both_lack_one_are_found() -> None:
    (found,) = stuck(IDLE)

    assert found.message == (
        "10 steps running (3 to 12, 100 ns) computed nothing: 2 requests hold 7 of 7 KV blocks and "
        "lack more, or wait for those who do: a (4), b (3)"
    )
    assert (found.request, found.step, found.evidence["holders that lack more"]) == ("a", 3, 2)


def test_one_who_waits_behind_the_other_is_part_of_it() -> None:
    behind = decision("request", "b", "deferred", 30, resource="queue", reason="waits behind a")

    (found,) = stuck(IDLE, [lacks("a"), behind])

    assert (found.evidence["holders"], found.evidence["holders that lack more"]) == (2, 1)


def test_tokens_of_a_pool_that_is_counted_in_them_are_held_and_waited_for_likewise() -> None:
    held = [each | {"resource": "kv-token"} for each in HELD]
    told = [lacks(name, resource="kv-token") for name in ("a", "b")]

    (found,) = stuck(IDLE, told, held)

    assert "2 requests hold 7 tokens of KV and lack more" in found.message
    assert found.evidence["held_tokens"] == 7
    assert "pool_tokens" not in found.evidence


def test_who_holds_tokens_and_lacks_blocks_does_not_wait_for_what_the_others_hold() -> None:
    assert stuck(IDLE, held=[each | {"resource": "kv-token"} for each in HELD]) == []


@looped(
    ("steps", "told", "held"),
    [
        pytest.param([decode(n, 2) for n in range(3, 13)], None, None, id="they run"),
        pytest.param(IDLE[:8], None, None, id="for a few steps"),
        pytest.param(IDLE, None, HELD[:4], id="one holds blocks, and the other none"),
        pytest.param(IDLE, None, [*HELD, *(owned("release", n, "b", 29) for n in (4, 5, 6))],
                     id="one has let go"),
        pytest.param(IDLE, [lacks("a", resource="grammar")], None, id="they lack something else"),
        pytest.param(IDLE, [lacks("a"), lacks("a", ts_ns=35, verdict="admitted")], None,
                     id="it has got what it lacked"),
        pytest.param([each | {"num_waiting": 0} for each in IDLE], None, None, id="nobody is left"),
    ],
)  # fmt: skip
def test_waiting_that_ends_is_no_deadlock(
    steps: list[Row], told: list[Row] | None, held: list[Row] | None
) -> None:
    assert stuck(steps, told, held) == []


def test_without_the_blocks_of_each_request_it_cannot_be_judged() -> None:
    trace = trace_of(steps=IDLE, decisions=[lacks("a")])

    assert check(trace, (HoldAndWait(),)).not_applicable == ("KVB008",)


def test_an_engine_in_which_nobody_gives_way_stands_still(record: Record) -> None:
    trace = record("fcfs-preemption", fault="nobody-gives-way")

    (found,) = HoldAndWait().check(trace)

    assert (found.evidence["holders"], found.evidence["held_blocks"]) == (16, 60)
    assert found.evidence["run_steps"] == 1_001


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert HoldAndWait().check(record(scenario)) == []
