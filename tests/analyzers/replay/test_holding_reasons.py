from __future__ import annotations

from collections.abc import Callable

import polars as pl

from stepscope import Trace
from stepscope.analyzers.replay.holding_reasons import grammar_waits, throttled_steps
from stepscope.ingest.manifest import Manifest

Told = list[tuple[int, str, str]]


def rows_of(
    decided: Told, moved: Told, ran: list[tuple[int, str]]
) -> Callable[[str], pl.LazyFrame]:
    """Decisions (step, request, resource), events (step, request, event), rows of batches."""
    decisions = [
        {"rank": 0, "step": step, "ts_ns": step, "subject_kind": "request", "subject": request,
         "verdict": "deferred", "resource": resource}
        for step, request, resource in decided
    ]  # fmt: skip
    lifecycle = [
        {"rank": 0, "step": step, "ts_ns": step, "request": request, "event": event}
        for step, request, event in moved
    ]
    batches = [
        {"rank": 0, "step": step, "ts_ns": step, "request": request, "phase": "decode",
         "num_tokens": 1}
        for step, request in ran
    ]  # fmt: skip
    tables = {"decisions": decisions, "lifecycle": lifecycle, "batch_rows": batches}
    frames = {name: pl.LazyFrame(rows) for name, rows in tables.items() if rows}
    trace = Trace.from_tables(frames, Manifest("vllm"))
    return trace.table


def test_a_grammar_is_there_at_the_step_at_which_something_else_is_told() -> None:
    rows = rows_of(
        [(2, "a", "grammar"), (5, "a", "kv-block"), (3, "b", "grammar"), (3, "c", "grammar")],
        [(7, "b", "admit")], [],
    )  # fmt: skip

    found = grammar_waits(rows("decisions"), rows("lifecycle").collect())

    assert found == {"a": 5, "b": 7, "c": -1}


def test_prefills_are_held_back_until_whoever_waited_for_that_is_told_otherwise() -> None:
    rows = rows_of(
        [(2, "a", "dp-throttle"), (6, "b", "dp-throttle"), (8, "b", "kv-block")],
        [(4, "a", "admit")], [(4, "a"), (5, "a")],
    )  # fmt: skip

    assert throttled_steps(rows) == {2, 3, 6, 7}


def test_a_chunk_that_runs_again_is_held_back_no_more() -> None:
    rows = rows_of([(2, "a", "dp-throttle"), (9, "z", "queue")], [(1, "a", "admit")], [(4, "a")])

    assert throttled_steps(rows) == {2, 3}


def test_where_nobody_waited_for_other_ranks_nothing_was_held_back() -> None:
    rows = rows_of([(2, "a", "kv-block")], [(4, "a", "admit")], [])

    assert throttled_steps(rows) == set()
