"""Small traces for the tests of the debugger."""

from __future__ import annotations

from stepscope.ingest.times import MS
from stepscope.ingest.trace import Trace
from tests.traces import trace_of


def a_fight_for_a_block() -> Trace:
    """Four steps; `a` has block 5 from step 1, loses it to `b` in step 3, and `c` waits."""
    event, claim = {"step": 1, "request": "a"}, {"resource": "kv-block", "id": 5}
    return trace_of(
        steps=[
            {"step": step, "ts_ns": 100 * step, "dur_ns": 90, "kind": "decode", "num_waiting": step}
            for step in (1, 2, 3, 4)
        ],
        batch_rows=[
            {
                "step": step, "ts_ns": 100 * step, "row": 0, "request": "a" if step < 3 else "b",
                "phase": "decode", "num_tokens": 1, "num_computed": 9 + step, "prompt_len": 10,
            }
            for step in (1, 2, 3, 4)
        ],
        lifecycle=[
            {**event, "ts_ns": 90, "event": "arrive", "queue_index": 0},
            {**event, "ts_ns": 100, "event": "admit"},
            {**event, "ts_ns": 150, "event": "arrive", "request": "b", "queue_index": 0},
            {**event, "ts_ns": 160, "event": "arrive", "request": "c", "queue_index": 1},
            {**event, "ts_ns": 290, "event": "preempt", "step": 3, "by_request": "b",
             "queue_index": 0},
            {**event, "ts_ns": 300, "event": "admit", "step": 3, "request": "b"},
        ],
        allocations=[
            {**claim, "step": 1, "ts_ns": 100, "op": "claim", "owner": "a"},
            {**claim, "step": 3, "ts_ns": 290, "op": "release", "owner": "a"},
            {**claim, "step": 3, "ts_ns": 300, "op": "claim", "owner": "b"},
        ],
        decisions=[
            {
                "step": 3, "ts_ns": 300, "subject_kind": "request", "subject": "c",
                "verdict": "deferred", "reason": "too few blocks", "resource": "kv-block",
                "needed": 1, "available": 0, "holder": "b",
            },
        ],
    )  # fmt: skip


def two_ranks() -> Trace:
    """Rank 0 forms its steps at 100 and 200, rank 1 at 150 and 250."""
    return trace_of(
        steps=[
            {"rank": rank, "step": step, "ts_ns": 100 * step + 50 * rank, "kind": "decode"}
            for rank in (0, 1)
            for step in (1, 2)
        ]
    )


def hits_on_two_ranks() -> Trace:
    """Four steps of rank 0, and between the third and the fourth two of rank 1."""
    step = {"kind": "decode", "num_waiting": 1}
    times = [(0, number, number * MS) for number in (1, 2, 3, 4)]
    others = [(1, 1, 3 * MS + 200_000), (1, 2, 3 * MS + 400_000)]
    return trace_of(
        steps=[
            {**step, "rank": rank, "step": number, "ts_ns": ts_ns}
            for rank, number, ts_ns in (*times, *others)
        ]
    )


def waiting_on_rank_one() -> Trace:
    """Two ranks step together; `early` runs on rank 0, and `late` waits on rank 1."""
    come = {"event": "arrive", "queue_index": 0, "prompt_len": 8}
    return trace_of(
        steps=[
            {"rank": rank, "step": step, "ts_ns": 100 * step + 10 * rank, "kind": "decode"}
            for rank in (0, 1)
            for step in (1, 2, 3)
        ],
        lifecycle=[
            {**come, "rank": 0, "step": 1, "ts_ns": 90, "request": "early"},
            {"rank": 0, "step": 1, "ts_ns": 100, "request": "early", "event": "admit"},
            {**come, "rank": 1, "step": 1, "ts_ns": 91, "request": "late"},
        ],
        decisions=[
            {
                "rank": 1, "step": step, "ts_ns": 100 * step + 10, "subject_kind": "request",
                "subject": "late", "verdict": "deferred", "reason": "too few blocks",
                "resource": "kv-block", "needed": 1, "available": 0,
            }
            for step in (1, 2, 3)
        ],
        tasks=[{"rank": 1, "step": 1, "ts_ns": 100, "task": 7, "shape": "AIC", "num_blocks": 1}],
    )  # fmt: skip
