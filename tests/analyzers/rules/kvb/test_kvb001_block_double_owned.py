"""KVB001: a block or slot has two owners."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import polars as pl
import pytest

from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.kvb.kvb001_block_double_owned import BlockDoubleOwned
from stepscope.engine.faults.fcfs import BURSTS
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row
from tests.analyzers.serving_rows import owned
from tests.looped import looped
from tests.traces import trace_of


def doubled(*rows: Row, **manifest: Any) -> list[Finding]:
    return BlockDoubleOwned().check(trace_of(allocations=rows, **manifest))


def test_a_block_that_is_claimed_while_another_has_it_is_found() -> None:
    (found,) = doubled(
        owned("claim", 7, "a", 10), owned("claim", 7, "b", 30), owned("release", 7, "a", 50),
        owned("release", 7, "b", 90),
    )  # fmt: skip

    assert found.message == "b was given 1 KV block that a still had: first block 7, for 20 ns"
    assert (found.request, found.step, found.ts_ns, found.end_ns) == ("b", 30, 30, 50)


def test_a_block_that_is_given_twice_is_one_block() -> None:
    (found,) = doubled(
        owned("claim", 7, "a", 10), owned("claim", 7, "b", 30), owned("release", 7, "b", 40),
        owned("claim", 7, "b", 50), owned("release", 7, "b", 60), owned("release", 7, "a", 90),
    )  # fmt: skip

    assert found.message.startswith("b was given 1 KV block that a still had")
    assert (found.count, found.evidence["KV blocks"]) == (2, 1)


def test_a_block_that_was_let_go_before_it_is_free_has_one_owner() -> None:
    found = doubled(
        owned("claim", 7, "a", 10), owned("let-go", 7, "a", 20), owned("claim", 7, "b", 30),
        owned("release", 7, "a", 40), owned("release", 7, "b", 50),
    )  # fmt: skip

    assert found == []


def test_a_claim_behind_a_block_that_was_let_go_and_freed_is_an_owner_again() -> None:
    found = doubled(
        owned("claim", 7, "a", 10), owned("let-go", 7, "a", 20), owned("release", 7, "a", 25),
        owned("claim", 7, "a", 30), owned("claim", 7, "b", 40), owned("release", 7, "a", 60),
    )  # fmt: skip

    assert [(each.request, each.ts_ns, each.end_ns) for each in found] == [("b", 40, 60)]


@looped("op", ["cache", "evict", "copy"])
def test_what_happens_to_the_contents_of_a_block_makes_nobody_its_owner(op: str) -> None:
    assert doubled(owned("claim", 7, "a", 10), owned(op, 7, "b", 20, block_hash="beef")) == []


def test_blocks_that_one_request_took_from_another_are_one_finding() -> None:
    rows = [owned("claim", block, "a", 10) for block in range(5)]

    (found,) = doubled(*rows, *(owned("claim", block, "b", 20 + block) for block in range(3)))

    assert (
        found.message == "b was given 3 KV blocks that a still had: first block 0, neither let go"
    )
    assert (found.count, found.end_ns) == (3, None)


def test_slots_are_said_to_be_slots() -> None:
    (found,) = doubled(
        owned("claim", 1, "a", 0, resource="slot"), owned("claim", 1, "b", 5, resource="slot")
    )

    assert found.message == "b was given 1 slot that a still had: first slot 1, neither let go"


@looped(
    "rows",
    [
        pytest.param([owned("release", 7, "a", 30), owned("claim", 7, "b", 30)], id="one moment"),
        pytest.param([owned("share", 7, "b", 30)], id="shared"),
        pytest.param([owned("claim", 8, "b", 30)], id="another block"),
        pytest.param([owned("claim", 7, "b", 30, rank=1)], id="another rank"),
        pytest.param([owned("claim", 7, "b", 30, resource="slot")], id="another resource"),
        pytest.param([owned("claim", 7, "a", 30)], id="its own"),
        pytest.param([owned("claim", 7, "b", 30), owned("release", 7, "b", 30)], id="for no time"),
    ],
)
def test_what_is_not_two_owners_is_clean(rows: list[Row]) -> None:
    assert doubled(owned("claim", 7, "a", 10), *rows) == []


def test_a_block_is_claimed_from_those_who_shared_it_too() -> None:
    rows = [owned("claim", 7, "a", 10), owned("share", 7, "b", 20), owned("release", 7, "a", 30)]

    (found,) = doubled(*rows, owned("claim", 7, "c", 40), owned("release", 7, "b", 60))

    assert (found.request, found.evidence["holder"], found.end_ns) == ("c", "b", 60)


@looped("order", list(permutations(range(3))), ids=str)
def test_a_claim_and_shares_of_one_moment_are_a_prefix_cache_in_any_order_of_rows(
    order: tuple[int, ...],
) -> None:
    rows = [owned("claim", 7, "a", 10), owned("share", 7, "b", 10), owned("share", 7, "c", 10)]

    assert doubled(*(rows[place] for place in order)) == []


@looped("order", list(permutations(range(3))), ids=str)
def test_two_claims_of_one_moment_are_two_owners_whoever_shares(order: tuple[int, ...]) -> None:
    rows = [owned("claim", 7, "a", 10), owned("share", 7, "b", 10), owned("claim", 7, "c", 10)]

    (found,) = doubled(*(rows[place] for place in order))

    assert {found.request, found.evidence["holder"]} == {"a", "c"}


def test_a_claim_of_what_another_still_has_is_found_though_it_is_shared_at_once() -> None:
    rows = [owned("share", 7, "c", 30), owned("claim", 7, "b", 30)]

    (found,) = doubled(owned("claim", 7, "a", 10), *rows, owned("release", 7, "a", 50))

    assert (found.request, found.evidence["holder"], found.end_ns) == ("b", "a", 50)


def test_a_move_leaves_the_slot_that_was_had_before() -> None:
    slot = {"resource": "slot"}
    rows = [owned("claim", 3, "a", 10, **slot), owned("move", 0, "a", 20, **slot)]

    assert doubled(*rows, owned("claim", 3, "b", 30, **slot)) == []
    assert len(doubled(*rows, owned("claim", 0, "b", 30, **slot))) == 1


@looped("doubt", [{"closed": False}, {"tables": {"allocations": "partial"}}])
def test_a_release_that_is_missing_proves_nothing_when_rows_may_be(doubt: dict[str, Any]) -> None:
    assert doubled(owned("claim", 7, "a", 10), owned("claim", 7, "b", 30), **doubt) == []


def test_a_release_that_comes_too_early_is_found_in_a_recorded_run(record: Record) -> None:
    trace = record("fcfs-preemption")
    rows = trace.allocations.collect()
    victim = rows.filter(pl.col("op") == "release").row(0, named=True)
    is_victims = (pl.col("id") == victim["id"]) & (pl.col("owner") == victim["owner"])
    kept = rows.filter(~(is_victims & (pl.col("op") == "release")))

    found = BlockDoubleOwned().check(Trace.from_tables({"allocations": kept}, trace.manifest))

    assert {each.evidence["holder"] for each in found} == {victim["owner"]}


@looped(
    ("scenario", "variant"),
    [
        ("fcfs-preemption", "before"), ("fcfs-preemption", "after"), ("slot-recycling", "before"),
        ("slot-recycling", "after"), ("mix-admission", "after"),
    ],
)  # fmt: skip
def test_engines_that_share_nothing_are_clean(record: Record, scenario: str, variant: str) -> None:
    assert BlockDoubleOwned().check(record(scenario, variant)) == []


def test_an_engine_that_frees_a_block_again_is_found(record: Record) -> None:
    found = BlockDoubleOwned().check(record("fcfs-preemption", fault="block-given-twice"))

    assert [(each.request, each.evidence["holder"]) for each in found] == [
        ("req-17", "req-16"), ("req-22", "req-15"), ("req-21", "req-23"),
    ]  # fmt: skip
    sound = record("fcfs-preemption", **{**BURSTS, "requests": "24", "num_kv_blocks": "60"})
    assert BlockDoubleOwned().check(sound) == []
