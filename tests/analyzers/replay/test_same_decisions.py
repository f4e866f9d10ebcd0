from __future__ import annotations

import polars as pl

from stepscope import Trace
from stepscope.analyzers.replay.same_decisions import compare
from stepscope.ingest.manifest import Manifest

Batch = list[tuple[str, int]]


def trace(batches: list[Batch], blocks: list[int] | None = None) -> Trace:
    rows = [(step, name, num) for step, batch in enumerate(batches) for name, num in batch]
    tables = {
        "steps": pl.DataFrame({
            "step": range(len(batches)), "ts_ns": range(len(batches)),
            "kind": ["mixed"] * len(batches),
        }),
        "batch_rows": pl.DataFrame({
            "step": [row[0] for row in rows], "ts_ns": [row[0] for row in rows],
            "row": range(len(rows)), "request": [row[1] for row in rows],
            "phase": ["decode"] * len(rows), "num_tokens": [row[2] for row in rows],
        }),
    }  # fmt: skip
    if blocks is not None:
        tables["allocations"] = pl.DataFrame({
            "step": range(len(blocks)), "ts_ns": range(len(blocks)), "id": blocks,
            "resource": ["kv-block"] * len(blocks), "op": ["claim"] * len(blocks),
            "owner": ["a"] * len(blocks),
        })  # fmt: skip
    return Trace.from_tables(tables, Manifest("vllm"))


def test_the_first_step_with_another_batch_is_named_with_both_batches() -> None:
    one = trace([[("a", 1)], [("a", 1), ("b", 4)], [("a", 1)]])
    other = trace([[("a", 1)], [("a", 1), ("b", 3)], [("b", 1)]])

    found = compare(one, other, 0)

    assert found.divergence is not None
    assert (found.divergence.step, found.divergence.stage) == (1, "batch")
    assert found.divergence.recorded[1] == {"request": "b", "num_tokens": 4}
    assert found.divergence.replayed[1] == {"request": "b", "num_tokens": 3}


def test_blocks_of_other_numbers_that_are_used_alike_are_the_same() -> None:
    batches: list[Batch] = [[("a", 1)]] * 4

    assert compare(trace(batches, [5, 6, 5, 7]), trace(batches, [1, 2, 1, 3]), 0).divergence is None


def test_blocks_that_are_used_otherwise_are_a_divergence() -> None:
    batches: list[Batch] = [[("a", 1)]] * 4

    found = compare(trace(batches, [5, 6, 5, 7]), trace(batches, [1, 2, 2, 3]), 0)

    assert found.divergence is not None
    assert (found.divergence.step, found.divergence.stage) == (2, "KV blocks")


def test_a_replay_that_ends_early_is_a_divergence() -> None:
    batches: list[Batch] = [[("a", 1)]] * 3

    found = compare(trace(batches), trace(batches[:2]), 0)

    assert found.divergence is not None
    assert found.divergence.step == 2


def test_what_was_not_recorded_is_said_not_to_be_compared() -> None:
    found = compare(trace([[("a", 1)]]), trace([[("a", 1)]]), 0)

    assert "KV blocks" in found.not_compared
