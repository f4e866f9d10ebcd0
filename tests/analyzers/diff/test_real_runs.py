"""Two runs of a real engine have other ids, clocks and numbers of blocks, and decide the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import polars as pl

from stepscope.analyzers.diff.compare import Difference, diff
from stepscope.analyzers.diff.pairing import CLIENT, LENGTHS, STEM, pair
from stepscope.analyzers.diff.stages import KV_BLOCKS
from stepscope.app.present.diff_text import verdict_lines
from stepscope.ingest.schema import TABLES
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import Row, event
from tests.looped import looped
from tests.recorded import RUNS, RecordedRun
from tests.tiers import slow
from tests.traces import trace_of

LATER_NS = 86_400_000_000_123
TIMES = ("ts_ns", "formed_ns", "deadline_ns", "gpu_ts_ns")


def claimed(step: int, block: int, owner: str = "r", op: str = "claim") -> Row:
    return {"step": step, "ts_ns": 10 * step, "resource": "kv-block", "id": block, "op": op,
            "owner": owner}  # fmt: skip


def steps_of(*tokens: int) -> dict[str, Any]:
    """Steps of one request, with so many tokens each."""
    return {
        "steps": [
            {"step": at, "ts_ns": 10 * at, "dur_ns": 10, "kind": "decode"}
            for at in range(len(tokens))
        ],
        "batch_rows": [
            {"step": at, "ts_ns": 10 * at, "request": "r", "phase": "decode", "num_tokens": n}
            for at, n in enumerate(tokens)
        ],
    }


def said(found: Difference) -> list[str]:
    return list(verdict_lines(found))


def compared(ours: list[Row], theirs: list[Row]) -> Difference:
    return diff(*(trace_of(**steps_of(1, 1, 1, 1), allocations=rows) for rows in (ours, theirs)))


def again(trace: Trace, seed: int) -> Trace:
    """The trace as another run of the same engine would have it, which decides the same."""
    draw = random.Random(seed)
    ids = trace.lifecycle.select(pl.col("request").drop_nulls().unique()).collect()["request"]
    suffixes = {each: f"{each[:-8]}{draw.getrandbits(32):08x}" for each in ids}
    blocks = trace.allocations.select(pl.col("id").unique()).collect()["id"].to_list()
    others = dict(zip(blocks, draw.sample(range(10_000), len(blocks)), strict=True))
    frames = {}
    for table in TABLES:
        columns = trace.table(table.name).collect_schema().names()
        renamed = [
            pl.col(name).replace(suffixes)
            for name in ("request", "by_request", "owner", "subject", "holder", "instead")
            if name in columns
        ]
        moved = [pl.col(name) + LATER_NS for name in TIMES if name in columns]
        numbered = [pl.col("id").replace_strict(others)] if table.name == "allocations" else []
        frames[table.name] = trace.table(table.name).with_columns(*renamed, *moved, *numbered)
    return trace.replacing(frames, trace.manifest)


@slow
@looped("name", RUNS)
def test_a_recorded_run_decides_as_it_does_when_ids_blocks_and_clock_are_others(
    recorded: Callable[[str], RecordedRun], name: str
) -> None:
    ours = recorded(name).trace

    found = diff(ours, again(ours, seed=1))

    assert found.verdict == "equal"
    assert found.firsts[KV_BLOCKS] is None
    assert found.inputs == ()
    assert found.pairing.inferred.keys() == {STEM}
    assert found.renumbered == ours.allocations.select(pl.col("id").n_unique()).collect().item()
    assert found.outcomes.requests["gain_ns"].drop_nulls().unique().to_list() == [0]


def test_blocks_that_are_numbered_otherwise_are_the_same() -> None:
    ours = [claimed(0, 1), claimed(1, 2), claimed(2, 1, op="release"), claimed(3, 1)]
    theirs = [{**row, "id": {1: 70, 2: 5}[row["id"]]} for row in ours]

    found = compared(ours, theirs)

    assert found.verdict == "equal"
    assert found.renumbered == 2
    assert any(line.startswith("2 KV blocks of B with another number") for line in said(found))


def test_a_block_that_is_taken_again_is_another_than_a_new_one() -> None:
    ours = [claimed(0, 1), claimed(1, 1, op="release"), claimed(2, 1)]
    theirs = [claimed(0, 8), claimed(1, 8, op="release"), claimed(2, 9)]

    found = compared(ours, theirs)

    assert found.renumbered == 1
    assert found.divergence is not None
    assert (found.divergence.stage, found.divergence.step) == (KV_BLOCKS, 2)
    assert [each and each["id"] for each in (found.divergence.row_a, found.divergence.row_b)] == [
        1, 9,
    ]  # fmt: skip


def test_a_slot_of_another_number_is_another_slot() -> None:
    slots = [[{**claimed(0, at), "resource": "slot"}] for at in (1, 2)]

    found = compared(*slots)

    assert found.divergence is not None
    assert found.divergence.stage == "allocations"


@slow
def test_what_is_decided_comes_before_the_blocks_that_differed_sooner() -> None:
    ours = trace_of(**steps_of(1, 1, 1, 1), allocations=[claimed(1, 1)])
    theirs = trace_of(**steps_of(1, 1, 1, 2), allocations=[claimed(1, 1), claimed(1, 2)])

    found = diff(ours, theirs)

    assert found.divergence is not None
    assert (found.divergence.stage, found.divergence.step) == ("batch", 3)
    assert found.firsts[KV_BLOCKS] == (0, 1)


@slow
def test_a_request_that_happened_to_arrive_a_step_later_is_no_headline() -> None:
    ours, theirs = (
        trace_of(**steps_of(1, 1, last), lifecycle=[event("r", "arrive", at)])
        for at, last in ((0, 1), (1, 2))
    )

    found = diff(ours, theirs)

    assert found.divergence is not None
    assert found.divergence.stage == "batch"
    assert found.firsts["arrivals"] == (0, 0)


def test_requests_are_paired_by_the_ids_that_clients_gave_before_anything_else() -> None:
    def run(*asked: tuple[str, str | None, int]) -> Trace:
        rows = [
            event(name, "arrive", at, external_id=client, prompt_len=prompt, max_tokens=5)
            for at, (name, client, prompt) in enumerate(asked)
        ]
        return trace_of(lifecycle=rows)

    ours = run(("a-0001aaaa", "alice", 10), ("a-0002aaaa", "bob", 20), ("x1", None, 30))
    theirs = run(("a-000fbbbb", "bob", 10), ("a-000cbbbb", "alice", 20), ("y1", None, 30))

    found = pair(ours, theirs)

    assert found.names == {"a-000fbbbb": "a-0002aaaa", "a-000cbbbb": "a-0001aaaa", "y1": "x1"}
    assert found.inferred == {CLIENT: 2, LENGTHS: 1}


def test_a_deadline_is_as_long_after_the_arrival_on_whatever_clock() -> None:
    ours, theirs = (
        trace_of(
            **steps_of(1), lifecycle=[event("r", "arrive", at, deadline_ns=at + 50) | {"step": 0}]
        )
        for at in (0, LATER_NS)
    )

    assert diff(ours, theirs).inputs == ()


@slow
def test_how_long_steps_took_is_compared_where_time_is_simulated_alone() -> None:
    measured = trace_of(**steps_of(1, 1))
    slower = trace_of(
        **{**steps_of(1, 1), "steps": [{**row, "dur_ns": 9} for row in steps_of(1, 1)["steps"]]}
    )

    assert measured.manifest.clock.kind != "virtual"
    assert diff(measured, slower).slower is None
