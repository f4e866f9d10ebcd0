"""What a core did at a moment is what its blocks say, one by one."""

from __future__ import annotations

import random

from stepscope.analyzers.summary.core_moment import core_at
from tests.analyzers.rows import decision, part
from tests.analyzers.summary.every_trace import each_file, opened
from tests.tiers import slow
from tests.traces import trace_of

BLOCKS = [
    part(1, 0, 10, 30, dispatch_ns=5), part(2, 0, 40, 50, dispatch_ns=20, ready_ns=12),
    part(3, 0, 60, None, dispatch_ns=55, ready_ns=15),
]  # fmt: skip


def at(ts_ns: int) -> tuple[list[int], list[int], list[int], int | None, int | None]:
    found = core_at(trace_of(core_spans=BLOCKS), 0, 0, ts_ns)
    tasks = ([row["task"] for row in rows] for rows in (found.running, found.given, found.later))
    return (*tasks, found.held_since_ns, found.free_since_ns)  # type: ignore[return-value]  # three lists


def test_a_core_runs_holds_and_keeps_pending_what_its_blocks_say() -> None:
    assert at(4) == ([], [], [], None, None)
    assert at(7) == ([], [1], [], 5, None)
    assert at(13) == ([1], [], [2], None, None)
    assert at(25) == ([1], [2], [3], None, None)
    assert at(35) == ([], [2], [3], 30, 30)
    assert at(52) == ([], [], [3], None, 50)
    assert at(99) == ([3], [], [], None, None)


def test_a_task_that_was_left_out_for_the_core_waits_until_it_is_admitted() -> None:
    told = [
        decision("task", "7", "deferred", 10, core=0, resource="core"),
        decision("task", "7", "admitted", 30, core=0),
        decision("task", "8", "deferred", 10, core=1, resource="core"),
    ]
    trace = trace_of(core_spans=BLOCKS, decisions=told)

    waits = {ts: [row["subject"] for row in core_at(trace, 0, 0, ts).decided] for ts in (9, 10, 30)}

    assert waits == {9: [], 10: ["7"], 30: []}


@slow
@each_file
def test_cores_of_every_file_do_at_any_time_what_a_scan_of_their_blocks_says(name: str) -> None:
    trace = opened(name)
    rows = [
        row
        for row in trace.core_spans.collect().to_dicts()
        if None not in (row["rank"], row["core"], row["ts_ns"])
    ]
    chosen = random.Random(7)
    for row in chosen.sample(rows, min(len(rows), 12)):
        rank, core = row["rank"], row["core"]
        own = [each for each in rows if (each["rank"], each["core"]) == (rank, core)]
        given = {id(each): min(each["dispatch_ns"] or each["ts_ns"], each["ts_ns"]) for each in own}
        moments = (row["ts_ns"], given[id(row)], row["ts_ns"] - 1, row["end_ns"] or row["ts_ns"])
        for ts_ns in moments:
            runs = [
                (each["task"], each["block"])
                for each in own
                if each["ts_ns"] <= ts_ns and not (each["end_ns"] or 2**62) <= ts_ns
            ]
            waits = [
                (each["task"], each["block"])
                for each in own
                if given[id(each)] <= ts_ns < each["ts_ns"]
            ]

            found = core_at(trace, rank, core, ts_ns)

            assert sorted((e["task"], e["block"]) for e in found.running) == sorted(runs)
            assert sorted((e["task"], e["block"]) for e in found.given) == sorted(waits)
            assert (found.held_since_ns is not None) == (bool(waits) and not runs)
