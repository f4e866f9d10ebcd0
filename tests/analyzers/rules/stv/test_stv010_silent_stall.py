"""STV010: requests wait, running slots and blocks are free, and nobody is let in, silently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from stepscope.analyzers.check.run import check
from stepscope.analyzers.findings.finding import Finding
from stepscope.analyzers.rules.stv.stv010_silent_stall import SilentStall
from stepscope.engine.faults.fcfs import BURSTS
from stepscope.ingest.trace import Trace
from tests.analyzers.conftest import Record, each_scenario
from tests.analyzers.rows import Row, decision
from tests.analyzers.serving_rows import decode, prefill, step
from tests.looped import looped
from tests.traces import trace_of

ROOM: dict[str, Any] = {"num_waiting": 5, "kv_blocks_free": 60, "kv_blocks_total": 100}


def stalled(*steps: Row, told: list[Row] | None = None, **more: Any) -> list[Finding]:
    config = {"engine": {"max_num_seqs": 8}}
    trace = trace_of(steps=steps, decisions=told or [], config=config, **more)
    return SilentStall(max_steps=4).check(trace)


def test_an_admission_that_froze_while_others_decode_is_found() -> None:
    (found,) = stalled(prefill(1, 9, 3), *(decode(n, 3, **ROOM) for n in range(2, 9)))

    assert found.message == (
        "7 steps running (2 to 8, 70 ns) let nobody in, with up to 5 requests waiting, 5 of 8 "
        "running slots and 60 of 100 KV blocks free"
    )
    assert (found.step, found.ts_ns, found.end_ns, found.count) == (2, 20, 90, 1)
    assert found.evidence["steps"] == 7


def test_an_engine_that_schedules_nothing_at_all_is_found() -> None:
    nothing = {"num_prefill_tokens": 0, "num_decode_tokens": 0, "num_running": 0, **ROOM}

    assert len(stalled(*(step(n, "idle", **nothing) for n in range(1, 9)))) == 1


def test_an_engine_that_says_why_is_not_silent() -> None:
    told = [decision("request", "r1", "deferred", 15, reason="the adapter is not loaded")]

    assert stalled(*(decode(n, 3, **ROOM) for n in range(1, 9)), told=told) == []


def test_a_word_for_what_blocks_is_a_reason_as_well() -> None:
    told = [decision("request", "r1", "deferred", 15, resource="selection")]

    assert stalled(*(decode(n, 3, **ROOM) for n in range(1, 9)), told=told) == []


def test_waiting_behind_somebody_is_no_reason() -> None:
    told = [decision("request", "r1", "deferred", 15, reason="waits behind r0", resource="queue")]

    assert len(stalled(*(decode(n, 3, **ROOM) for n in range(1, 9)), told=told)) == 1


@looped(
    "taken",
    [{"kv_blocks_free": 20}, {"num_running": 8}, {"num_waiting": 0}, {"kv_blocks_free": None}],
    ids=["blocks", "max_num_seqs", "nobody waits", "not known"],
)
def test_waiting_for_blocks_or_running_slots_is_clean(taken: dict[str, Any]) -> None:
    assert stalled(*(decode(n, 3, **{**ROOM, **taken}) for n in range(1, 9))) == []


def test_a_recorded_run_whose_admission_is_frozen_is_found(record: Record) -> None:
    trace = record("fcfs-preemption", completions="bucketed", **BURSTS)
    steps = trace.steps.collect()
    late = steps.with_columns(
        pl.when(pl.col("step") > 240).then(9).otherwise("num_waiting").alias("num_waiting")
    )
    frozen = Trace.from_tables({"steps": late}, trace.manifest)

    assert SilentStall().check(trace) == []
    assert [each.step for each in SilentStall().check(frozen)] == [241]


def test_steps_that_were_read_from_tags_do_not_say_who_waits(shared_data: Path) -> None:
    trace = Trace.open(shared_data / "kineto" / "vllm_cpu_tiny_llama_preemptions.json.gz")

    assert check(trace, (SilentStall(),)).not_applicable == ("STV010",)


@each_scenario
def test_sound_engines_are_clean(record: Record, scenario: str) -> None:
    assert SilentStall().check(record(scenario)) == []


def test_blocks_that_were_lacking_and_are_free_since_are_no_reason() -> None:
    lacked = {"reason": "too few KV blocks are free", "resource": "kv-block", "available": 0}
    steps = [decode(n, 3, **ROOM) for n in range(1, 9)]

    for needed, count in ((60, 1), (61, 0), (None, 0)):
        told = [decision("request", "r1", "deferred", 5, needed=needed, **lacked)]
        assert len(stalled(*steps, told=told)) == count


def test_an_engine_that_remembers_that_its_batch_was_full_is_found(record: Record) -> None:
    (found,) = SilentStall().check(record("fcfs-preemption", fault="batch-full-latched"))

    assert found.evidence["longest run_steps"] == 1_001
    assert found.evidence["waiting at most"] == 20


@looped(("free", "count"), [(1, 1), (0, 0)])
def test_that_every_slot_was_taken_is_no_reason_while_one_is_free(free: int, count: int) -> None:
    lacked = {
        "reason": "every running slot is taken",
        "resource": "seat",
        "needed": 1,
        "available": 0,
    }
    told = [decision("request", "r1", "deferred", 15, step=1, **lacked)]

    assert len(stalled(*(decode(n, 8 - free, **ROOM) for n in range(1, 9)), told=told)) == count


def test_an_engine_whose_last_chunk_counts_twice_is_found(record: Record) -> None:
    (found,) = SilentStall().check(record("waiting-queue", fault="full-since-the-last-chunk"))

    assert found.message == (
        "255 steps running (6 to 260, 14.7 s) let nobody in, with up to 1 request waiting, 1 of 4 "
        "running slots and 3,484 of 4,096 KV blocks free"
    )
