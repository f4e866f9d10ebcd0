"""STV008: a request that fits the pool is dropped."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv008_premature_reject import PrematureReject
from stepscope.engine.workloads.workload import RequestSpec, Workload
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision
from tests.analyzers.serving_rows import decode
from tests.looped import looped
from tests.traces import trace_of

STEPS = [decode(n, 1, kv_blocks_total=120, kv_blocks_free=n) for n in (1, 2, 3)]


def rejected(request: str, needed: int | None, **more: Any) -> Row:
    short = {"resource": "kv-block", "needed": needed, "available": 1}
    return decision("request", request, "rejected", 10, **short) | more


def premature(*rows: Row) -> list[Finding]:
    return PrematureReject().check(trace_of(decisions=rows, steps=STEPS))


def test_a_request_that_the_pool_could_hold_is_found() -> None:
    (found,) = premature(rejected("r1", 3, reason="ignored: 3 blocks lacking"))

    assert found.message == (
        '1 request was rejected though it fits, because "ignored: * blocks lacking": first r1, '
        "which needed 3 of 120 KV blocks, with 1 free"
    )
    assert (found.request, found.ts_ns) == ("r1", 10)


def test_requests_that_were_dropped_for_one_reason_are_one_finding() -> None:
    (found,) = premature(*(rejected(f"r{n}", n, reason=f"lacks {n}") for n in range(1, 9)))

    assert (found.count, found.request) == (8, "r1")


@looped(
    "row",
    [
        rejected("r1", 121),
        rejected("r1", None),
        rejected("r1", 101, resource="token-budget"),
        rejected("r1", 140, resource="slot-tokens", available=128),
        rejected("r1", 3, verdict="deferred"),
    ],
    ids=["too large", "not told", "over the budget", "longer than a slot", "only deferred"],
)
def test_what_can_never_fit_or_is_not_dropped_is_clean(row: Row) -> None:
    assert premature(row) == []


def test_a_request_that_one_victim_was_too_little_for_is_found(record: Record) -> None:
    small = [RequestSpec(f"small-{n}", n, 16, 400) for n in range(8)]
    asked = Workload([*small, RequestSpec("large", 100, 600, 4)])
    settings = {"num_kv_blocks": "30", "block_size": "32", "completions": "bucketed"}

    (found,) = PrematureReject().check(
        record(
            "fcfs-preemption", fault="one-victim-then-ignored", workload=asked,
            **settings,
        )
    )  # fmt: skip

    assert found.request == "large"
    assert found.evidence["the whole"] == 30


def test_requests_that_one_victim_was_too_little_for_are_one_finding(record: Record) -> None:
    (found,) = PrematureReject().check(record("fcfs-preemption", fault="one-victim-then-ignored"))

    assert (found.request, found.count) == ("req-00", 3)


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert PrematureReject().check(record(scenario)) == []
