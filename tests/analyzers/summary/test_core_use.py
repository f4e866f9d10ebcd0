"""What is said of core groups in all is what following every block one by one comes to."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import Any

from stepscope.analyzers.summary.core_use import core_use, kernels_on_cores
from stepscope.ingest.trace import Trace
from tests.analyzers.rows import mix, part, task
from tests.analyzers.summary.every_trace import each_file, opened
from tests.analyzers.summary.test_gpu_use import union
from tests.tiers import slow
from tests.traces import trace_of

Row = dict[str, Any]


def by_core(trace: Trace) -> dict[tuple[Any, ...], list[Row]]:
    rows = trace.core_spans.collect().to_dicts()
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if None not in (row["rank"], row["core"], row["ts_ns"]):
            found[row["rank"], row["group"], row["core_kind"], row["core"]].append(row)
    return found


def window(rows: list[Row]) -> tuple[int, int]:
    begins = [min(row["ts_ns"], row["dispatch_ns"] or row["ts_ns"]) for row in rows]
    return min(begins), max(max(row["ts_ns"], row["end_ns"] or row["ts_ns"]) for row in rows)


def held(rows: list[Row]) -> int:
    """How long a core that nothing ran on had a block that had been dispatched, moment by moment.

    Time is cut at every dispatch, begin and end.
    """
    given = [min(row["dispatch_ns"] or row["ts_ns"], row["ts_ns"]) for row in rows]
    ends = [2**61 if row["end_ns"] is None else row["end_ns"] for row in rows]
    edges = sorted({*given, *ends, *(row["ts_ns"] for row in rows)} - {2**61})
    starts = [row["ts_ns"] for row in rows]
    total = 0
    for low, high in pairwise(edges):
        runs = any(s <= low < e for s, e in zip(starts, ends, strict=True))
        waits = any(g <= low < s for g, s in zip(given, starts, strict=True))
        total += (high - low) if waits and not runs else 0
    return total


def test_a_core_is_held_from_its_dispatch_until_the_block_begins() -> None:
    trace = trace_of(core_spans=[part(1, 0, 10, 30, dispatch_ns=4)])

    (row,) = core_use(trace).to_dicts()

    assert (row["run_ns"], row["held_ns"], row["window_ns"]) == (20, 6, 26)


def test_two_blocks_on_a_core_at_once_count_once() -> None:
    trace = trace_of(core_spans=[part(1, 0, 0, 30), part(2, 0, 10, 40)])

    assert core_use(trace)["run_ns"].to_list() == [40]


def test_a_block_that_never_ended_runs_until_the_last_moment_that_is_told() -> None:
    trace = trace_of(core_spans=[part(1, 0, 0, None), part(2, 1, 5, 50)])

    assert core_use(trace)["run_ns"].to_list() == [50, 45]


def test_kernels_are_counted_by_shape_with_their_skew_and_dispatch() -> None:
    blocks = [
        *mix(1, {0: 10, 1: 14, 2: 13}, 30, 8), part(2, 4, 20, 25, ready_ns=12, dispatch_ns=18)
    ]  # fmt: skip
    trace = trace_of(core_spans=blocks, tasks=[task(1, "qk L3", shape="MIX"), task(2, "push L4")])

    told = {row["kernel"]: row for row in kernels_on_cores(trace).to_dicts()}

    qk, push = told["qk L*"], told["push L*"]
    assert (qk["shape"], qk["num_blocks"], qk["run_ns"]) == ("MIX", 1, 20 + 16 + 17)
    assert (qk["skew_ns"], qk["most_skew_ns"], qk["held_ns"]) == (4, 4, 2 + 6 + 5)
    assert (push["skew_ns"], push["dispatch_ns"]) == (None, 8)


def test_where_no_dispatch_was_recorded_its_time_is_not_known() -> None:
    alone = part(1, 0, 10, 30, ready_ns=None, dispatch_ns=None)

    assert kernels_on_cores(trace_of(core_spans=[alone]))["dispatch_ns"].to_list() == [None]


@slow
@each_file
def test_cores_of_every_file_ran_and_were_held_as_their_blocks_say_one_by_one(name: str) -> None:
    trace = opened(name)
    found = by_core(trace)
    windows = {
        rank: window([row for key, rows in found.items() if key[0] == rank for row in rows])
        for rank in {key[0] for key in found}
    }

    told = {
        (row["rank"], row["group"], row["core_kind"], row["core"]): row
        for row in core_use(trace).to_dicts()
    }

    has_dispatches = any(row["dispatch_ns"] is not None for rows in found.values() for row in rows)
    assert told.keys() == found.keys()
    for key, rows in found.items():
        first, last = windows[key[0]]
        ends = [(row["ts_ns"], last if row["end_ns"] is None else row["end_ns"]) for row in rows]
        row = told[key]
        assert (row["num_blocks"], row["window_ns"]) == (len(rows), last - first)
        assert row["run_ns"] == union(ends)
        if len(rows) <= 600:  # moment by moment it takes the square of that
            assert row["held_ns"] == (held(rows) if has_dispatches else None), key


@each_file
def test_kernels_of_every_swimlane_ran_as_long_as_their_blocks_added_up(name: str) -> None:
    trace = opened(name)
    names = dict(trace.tasks.select("task", "name").collect().iter_rows())
    ran: dict[tuple[str, str], int] = defaultdict(int)
    for row in trace.core_spans.collect().to_dicts():
        known = None not in (row["core"], row["ts_ns"], row["end_ns"])
        if known and row["end_ns"] >= row["ts_ns"] and row["shape"] in ("AIC", "AIV", "MIX"):
            called = names.get(row["task"]) or f"task {row['task']}"
            ran[re.sub(r"[0-9]+", "*", called), row["shape"]] += row["end_ns"] - row["ts_ns"]

    told = {
        (row["kernel"], row["shape"]): row["run_ns"] for row in kernels_on_cores(trace).to_dicts()
    }

    assert told == ran
