"""COR013: a block computed on what another block had put into its core's local memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.cor.cor013_tile_overwritten import TileOverwritten
from stepscope.engine.device.late_parts import LATE_PARTS, WAITS
from stepscope.engine.scenarios import scenario
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record
from tests.analyzers.rows import Row, mix, part, task
from tests.engine.asked import asked
from tests.looped import looped
from tests.random_configurations.count_cores import wrong_blocks
from tests.random_configurations.tables import Tables
from tests.tiers import sampled
from tests.traces import trace_of

TASKS = [task(1, "push", 32), task(2, "qk_pv", 8, "MIX")]
PUSHED = part(1, 2, 1_000, 8_000, block=31)
SPANS = [PUSHED, *mix(2, {0: 5_000, 2: 8_500}, ended=20_000, dispatched=4_000, block=7)]


def touch(ts_ns: int, op: str, on: int, by: int, digest: str | None = None) -> Row:
    return {
        "step": 1, "ts_ns": ts_ns, "buffer": f"tile of core {on}", "op": op, "stream": f"core {by}",
        "digest": digest,
    }  # fmt: skip


def overwritten(*accesses: Row, spans: list[Row] | None = None, **more: Any) -> list[Finding]:
    given = {"core_spans": SPANS if spans is None else spans, "tasks": TASKS, **more}
    return TileOverwritten().check(trace_of(accesses=accesses, **given))


def test_a_tile_that_a_mix_sends_onto_a_running_block_is_found() -> None:
    (found,) = overwritten(
        touch(1_000, "write", 2, by=2, digest="pushed"),
        touch(5_000, "write", 2, by=0, digest="scores"),
        touch(8_000, "read", 2, by=2, digest="scores"),
    )

    assert found.message == (
        "push 31/32 computed on AIV1 of group 0 (core 2) with a tile that qk_pv 7/8 had sent there "
        "3.0 µs before"
    )
    assert (found.task, found.core, found.group, found.step) == (1, 2, 0, 1)
    assert found.evidence["contents found"] == "scores"
    assert found.evidence["contents of its own"] == "pushed"


def test_a_late_part_that_takes_what_the_block_before_it_left_is_found() -> None:
    (found,) = overwritten(
        touch(5_000, "write", 2, by=0, digest="scores"),
        touch(8_000, "write", 2, by=2, digest="result"),
        touch(20_000, "read", 2, by=2, digest="result"),
    )

    assert found.message == (
        "qk_pv 7/8 computed on AIV1 of group 0 (core 2) with what push 31/32 had left there "
        "12.0 µs before, not the tile sent to it"
    )


def test_what_is_sent_to_a_part_that_is_merely_late_is_its_own() -> None:
    sent = (touch(5_000, "write", 2, by=0, digest="scores"),)

    assert overwritten(*sent, touch(20_000, "read", 2, by=2, digest="scores")) == []


def test_a_tile_with_the_same_contents_is_not_spoilt() -> None:
    assert not overwritten(
        touch(1_000, "write", 2, by=2, digest="zeros"),
        touch(5_000, "write", 2, by=0, digest="zeros"),
        touch(8_000, "read", 2, by=2, digest="zeros"),
    )


def test_a_block_that_fills_its_memory_anew_has_its_own_tile_again() -> None:
    assert not overwritten(
        touch(5_000, "write", 2, by=0),
        touch(6_000, "write", 2, by=2),
        touch(8_000, "read", 2, by=2),
    )


def test_an_access_while_its_core_executes_nothing_is_not_judged() -> None:
    assert overwritten(touch(5_000, "write", 2, by=0), touch(8_200, "read", 2, by=2)) == []


def test_a_trace_without_local_memories_is_not_judged() -> None:
    kv_cache = touch(1_000, "write", 2, by=2) | {"buffer": "kv_cache"}
    trace = trace_of(accesses=[kv_cache], core_spans=SPANS, tasks=TASKS)

    assert check(trace, (TileOverwritten(),)).not_applicable == ("COR013",)


@pytest.mark.parametrize(
    "policy", sampled(["before", "uniform", "per-core-slot", "all-idle-or-pending"], ["before"])
)
def test_policies_that_start_parts_apart_are_found_where_hardware_does_not_queue(
    tmp_path: Path, policy: str
) -> None:
    settings = asked({"late_part": "corrupts", "steps": "1"})
    scenario("mix-admission").record(policy, tmp_path / "run.trace", settings)
    trace = Trace.open(tmp_path / "run.trace")
    found = TileOverwritten().check(trace)

    blocks = wrong_blocks(Tables(trace))
    assert sum(each.count for each in found) == len(blocks) > 50
    assert {each.task for each in found if each.count == 1} <= {task for task, _ in blocks}


def test_a_mix_that_is_admitted_on_its_aic_alone_is_found(record: Record) -> None:
    assert TileOverwritten().check(record("mix-admission", fault="late-part-overwrites-tile"))


@pytest.mark.parametrize("policy", sampled(["after", "barrier", "reserve-group"], ["after"]))
@looped("late_part", [each.name for each in LATE_PARTS if each is not WAITS])
def test_policies_that_start_all_parts_together_harm_nothing_where_hardware_does_not_queue(
    tmp_path: Path, policy: str, late_part: str
) -> None:
    settings = asked({"late_part": late_part, "steps": "1"})
    scenario("mix-admission").record(policy, tmp_path / "run.trace", settings)
    found = check(Trace.open(tmp_path / "run.trace")).findings

    assert {each.code for each in found} <= ({"COR006"} if policy == "reserve-group" else set())
