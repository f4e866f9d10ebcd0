"""STV014: a request waits for more KV blocks than there are."""

from __future__ import annotations

from typing import Any

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv014_never_fits import NeverFits
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, decision, event
from tests.analyzers.serving_rows import decode
from tests.looped import looped
from tests.traces import trace_of

STEPS = [decode(n, 1, kv_blocks_total=49) for n in (1, 2, 9)]


def held(request: str, needed: int | None, **more: Any) -> Row:
    short = {"resource": "kv-block", "needed": needed, "available": 49}
    return decision("request", request, "deferred", 20, **short) | more


def too_long(*told: Row, lifecycle: list[Row] | None = None) -> list[Finding]:
    return NeverFits().check(trace_of(decisions=told, steps=STEPS, lifecycle=lifecycle or []))


def test_a_request_that_is_larger_than_the_pool_is_found() -> None:
    (found,) = too_long(held("a", 63), held("a", 63, ts_ns=50))

    assert found.message == (
        "1 request waits for more KV blocks than there are: a needs 63 and the pool has 49, "
        "held for 80 ns"
    )
    assert (found.request, found.ts_ns, found.end_ns) == ("a", 20, 100)


def test_how_its_wait_ended_is_told() -> None:
    (found,) = too_long(held("a", 63), held("b", 64), lifecycle=[event("a", "abort", 70)])

    assert found.message == (
        "2 requests wait for more KV blocks than there are: first a needs 63 and the pool has 49, "
        "held for 50 ns until it was aborted"
    )


def in_tokens(needed: int | None, **config: Any) -> Trace:
    told = held("a", needed, resource="kv-token", available=4)
    return trace_of(decisions=[told], steps=STEPS, config=config)


def test_a_pool_that_is_counted_in_tokens_is_compared_in_tokens() -> None:
    (found,) = NeverFits().check(in_tokens(800, page_size=16))

    assert found.message == (
        "1 request waits for more tokens of KV than there are: a needs 800 and the pool has 784, "
        "held for 80 ns"
    )
    assert (found.evidence["needed_tokens"], found.evidence["pool_tokens"]) == (800, 784)
    assert NeverFits().check(in_tokens(784, page_size=16)) == []


@looped("trace", [in_tokens(800), in_tokens(None, page_size=16)],
                         ids=["how large a page is", "how many it needs"])  # fmt: skip
def test_what_is_not_told_of_a_pool_of_tokens_keeps_the_rule_from_judging(trace: Trace) -> None:
    assert check(trace, (NeverFits(),)).not_applicable == ("STV014",)


@looped(
    "told",
    [
        held("a", 49),
        held("a", None),
        held("a", 63, verdict="rejected"),
        held("a", 4_096, resource="token-budget"),
    ],
    ids=["it fits", "not known", "it is turned away", "a prompt goes in chunks"],
)
def test_what_fits_or_is_turned_away_is_clean(told: Row) -> None:
    assert too_long(told) == []


def test_a_pool_of_unknown_size_cannot_be_judged() -> None:
    trace = trace_of(decisions=[held("a", 63)], steps=[decode(1, 1)])

    assert check(trace, (NeverFits(),)).not_applicable == ("STV014",)


def test_an_engine_that_holds_what_is_too_long_is_found(record: Record) -> None:
    (found,) = NeverFits().check(record("fcfs-preemption", fault="too-long-is-held"))

    assert (found.evidence["needed_blocks"], found.evidence["pool_blocks"]) == (7, 5)


@looped(
    ("scenario", "settings"),
    [
        ("fcfs-preemption", {}),
        ("fcfs-preemption", {"num_kv_blocks": "5", "prompt_len": "200", "requests": "6"}),
        ("mixed-batches", {}),
    ],
)
def test_sound_engines_are_clean(record: Record, scenario: str, settings: dict[str, str]) -> None:
    assert NeverFits().check(record(scenario, **settings)) == []
