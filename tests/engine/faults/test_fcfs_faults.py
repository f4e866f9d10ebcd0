"""Faults of blocks and of admission: each leaves exactly its own marks in the trace."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from stepscope.engine.clock import VirtualClock
from stepscope.engine.config import EngineConfig
from stepscope.engine.executors.simulated import Simulated
from stepscope.engine.faults import fault
from stepscope.engine.memory.kv_blocks import KVBlocks
from stepscope.engine.scenarios.fcfs_preemption import COST
from stepscope.engine.schedulers.bucketed import Bucketed
from stepscope.engine.serving.engine import Engine
from stepscope.engine.workloads.workload import bursty, fixed
from tests.engine.rows import Rows

GIVEN_TWICE, LEAKED, LATCHED = "block-given-twice", "block-leaked", "batch-full-latched"


@cache
def served(name: str | None = None, requests: int = 40, num_kv_blocks: int = 120) -> Rows:
    """What an engine with that fault records of bursts of 16 every 4 s, without deadlines."""
    asked = bursty(requests, 16, 4_000_000_000, fixed(64, 100), 0, 20_000_000)
    faults = frozenset({name} if name else ())
    config = EngineConfig(num_kv_blocks=num_kv_blocks, block_size=32, faults=faults)
    scheduler, rows = Bucketed().with_faults(faults), Rows()
    Engine(config, asked, scheduler, Simulated(COST), VirtualClock(), rows.recorder).run()
    return rows


def taken_while_owned(rows: Rows) -> list[tuple[int, str, tuple[str, ...]]]:
    """Claims of a block that others still have: the block, who claims it, and they."""
    owners: dict[int, Counter[str]] = {}
    found = []
    for row in rows.of("allocations", resource="kv-block"):
        of_block = owners.setdefault(row["id"], Counter())
        if row["op"] == "claim":
            if others := tuple(of_block.elements()):
                found.append((row["id"], row["owner"], others))
            of_block[row["owner"]] += 1
        else:
            assert of_block[row["owner"]] > 0
            of_block[row["owner"]] -= 1
    return found


def test_a_block_that_is_freed_again_is_given_to_a_second_request() -> None:
    needed = fault(GIVEN_TWICE).settings
    sizes = {name: int(needed[name]) for name in ("requests", "num_kv_blocks")}

    found = taken_while_owned(served(GIVEN_TWICE, **sizes))

    robbed = [set(others) for _, owner, others in found if owner not in others]
    assert robbed
    assert all(len(each) == 1 for each in robbed)
    assert taken_while_owned(served(**sizes)) == []


def test_it_is_a_block_that_a_preemption_gave_back() -> None:
    rows = served(GIVEN_TWICE, requests=24, num_kv_blocks=60)
    preempted = {(row["request"], row["ts_ns"]) for row in rows.of("lifecycle", event="preempt")}
    went_back = {
        row["id"]
        for row in rows.of("allocations", op="release")
        if (row["owner"], row["ts_ns"]) in preempted
    }

    assert {block for block, _, _ in taken_while_owned(rows)} <= went_back


def test_a_block_of_two_owners_is_free_when_both_have_let_go() -> None:
    blocks = KVBlocks(2, 16)
    first, _ = blocks.claim("a")
    blocks.free_again(first)

    assert [blocks.claim(name)[0] for name in "bc"] == [1, first]
    blocks.release(first, "a")
    assert (blocks.owner[first], blocks.num_free) == ("c", 0)
    blocks.release(first, "c")
    assert (first in blocks.owner, blocks.num_free) == (False, 1)


def test_whoever_finishes_keeps_a_block_and_the_pool_shrinks_by_as_many() -> None:
    rows = served(LEAKED)
    ops = Counter(row["op"] for row in rows.of("allocations", resource="kv-block"))
    num_finished = len(rows.of("lifecycle", event="finish"))

    assert num_finished == 40
    assert ops["claim"] - ops["release"] == num_finished
    assert rows.of("steps")[-1]["kv_blocks_free"] < 120 - (num_finished - 8)
    sound = Counter(row["op"] for row in served().of("allocations", resource="kv-block"))
    assert sound["claim"] == sound["release"]


def last_let_in_ns(rows: Rows) -> int:
    events = [row for event in ("admit", "resume") for row in rows.of("lifecycle", event=event)]
    return max(int(row["ts_ns"]) for row in events)


def test_a_latched_batch_lets_nobody_in_although_the_pool_is_empty() -> None:
    rows = served(LATCHED)
    full_ns = rows.of("decisions", resource="kv-block", verdict="deferred")[0]["ts_ns"]
    last = rows.of("steps")[-1]

    assert last_let_in_ns(rows) < full_ns < last_let_in_ns(served())
    assert (last["kind"], last["num_running"], last["kv_blocks_free"]) == ("idle", 0, 120)
    assert last["num_waiting"] > 0
    assert len(served().of("lifecycle", event="finish")) == 40


def test_a_latched_batch_gives_no_reason_after_the_first() -> None:
    rows = served(LATCHED)
    *_, full = rows.of("decisions", resource="kv-block", verdict="deferred")

    assert rows.of("decisions", subject=full["subject"])[-1] == full


@pytest.mark.parametrize("name", [GIVEN_TWICE, LEAKED])
def test_what_goes_wrong_with_blocks_keeps_nobody_from_finishing(name: str) -> None:
    assert len(served(name).of("lifecycle", event="finish")) == 40
