"""The lanes of recorded collectives: a deadlock is seen, and who never came is said."""

from __future__ import annotations

from typing import Any

import pytest

from stepscope.app import palette
from stepscope.app.present.blocks import Fact, Paragraph, Table
from stepscope.app.present.details import span_blocks
from stepscope.app.present.spans.legend import states_of
from stepscope.app.timeline import Timeline
from stepscope.engine.runs.scenario import Options
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import drawn, spans_of
from tests.engine.recorded_once import RecordedOnce
from tests.traces import trace_of

CALLS = "collective calls"


def call(rank: int, ordinal: int, ts_ns: int, **more: Any) -> dict[str, Any]:
    row = {"op": "all-reduce", "group": "ep", "expected_ranks": "0,1", "dur_ns": 50, **more}
    return {"rank": rank, "ordinal": ordinal, "ts_ns": ts_ns, **row}


def deadlocked() -> Trace:
    return trace_of(
        collectives=[
            call(0, 0, 0), call(1, 0, 10),
            call(0, 1, 100, op="broadcast", slot=2, dur_ns=None),
            call(1, 1, 300, slot=3, dur_ns=None),
        ],
        ranks=[0, 1],
    )  # fmt: skip


def missing() -> Trace:
    rows = [call(0, 0, 0), call(1, 0, 0), call(0, 1, 100, dur_ns=None), call(0, 0, 400, group="x")]
    return trace_of(collectives=rows, ranks=[0, 1])


def test_ranks_of_a_group_are_next_to_each_other_and_a_deadlock_reaches_the_end() -> None:
    timeline = Timeline(deadlocked())

    last = timeline.bounds[1]
    assert last == 301 + 301 // 20  # so that the call that completes it is seen
    assert drawn(timeline, CALLS) == {
        "rank 0 · ep": [
            (0, 50, "communication", "all-reduce #0"),
            (100, last, "blocked", "≠ broadcast #1 slot 2"),
        ],
        "rank 1 · ep": [
            (10, 60, "communication", "all-reduce #0"),
            (300, last, "blocked", "≠ all-reduce #1 slot 3"),
        ],
    }
    assert "blocked" in [word for _, word in states_of(timeline)]


def test_a_rank_that_never_came_has_a_span_that_says_so_and_groups_have_lanes_of_their_own() -> (
    None
):
    timeline = Timeline(missing())

    lanes = drawn(timeline, CALLS)

    last = timeline.bounds[1]
    assert lanes["ep rank 1"] == [
        (0, 50, "communication", "all-reduce #0"),
        (100, last, "absent", "never came to all-reduce #1"),
    ]
    assert lanes["x rank 0"] == [(400, 450, "communication", "all-reduce #0")]


def test_a_selected_call_says_what_the_other_ranks_are_in() -> None:
    trace = deadlocked()
    timeline = Timeline(trace)
    lane = next(each.id for each in timeline.lanes if each.section == CALLS)

    blocks = [*span_blocks(spans_of(timeline, lane)[-1], timeline, trace)]

    facts = {block.label: block.values[0] for block in blocks if isinstance(block, Fact)}
    sentence = next(
        block.text
        for block in blocks
        if isinstance(block, Paragraph) and block.text.startswith("Rank")
    )
    table = next(block for block in blocks if isinstance(block, Table))
    assert "never returned from it: at this place rank 1 came with all-reduce (slot 3)" in sentence
    assert (facts["slot"], facts["expected"]) == ("2", "ranks 0, 1")
    assert facts["ends"].startswith("never")
    assert [(row[0], row[3]) for row in table.rows] == [
        ("rank 0", "never returned"), ("rank 1", "never returned"),
    ]  # fmt: skip


def test_a_selected_absence_says_who_waits_and_what_the_rank_did_last() -> None:
    trace = missing()
    timeline = Timeline(trace)
    lane = next(each.id for each in timeline.lanes if (each.group, each.label) == ("ep", "rank 1"))

    blocks = [*span_blocks(spans_of(timeline, lane)[-1], timeline, trace)]

    texts = [block.text for block in blocks if isinstance(block, Paragraph)]
    facts = {block.label: block.values[0] for block in blocks if isinstance(block, Fact)}
    assert "Rank 1 never came to all-reduce, in which rank 0 waits." in texts
    assert facts["rank 1 last"] == "operation 0, all-reduce"


def test_the_calls_of_a_collective_are_tied_in_the_order_in_which_ranks_entered() -> None:
    timeline = Timeline(deadlocked())
    first, second = (each.id for each in timeline.lanes if each.section == CALLS)

    (tied,) = timeline.flows.following(spans_of(timeline, first)[-1])

    assert tied.span.lane == second
    assert tied.span.label == "≠ all-reduce #1 slot 3"


@pytest.mark.parametrize("text", ["broadcast", "collective 1"])
def test_a_search_finds_calls_by_operation_and_by_place(text: str) -> None:
    hit = Timeline(deadlocked()).find(text)[0]

    assert (hit.kind, hit.ts_ns, hit.lane) == ("collective", 100, 0)


def test_the_minimap_of_a_trace_of_calls_alone_shows_them() -> None:
    load = Timeline(deadlocked()).load(10)

    assert load.what == "collective calls"
    assert palette.BLOCKED in load.states


def test_the_deadlock_of_report_003_is_seen_on_both_ranks(recorded_once: RecordedOnce) -> None:
    options = Options(faults=frozenset({"preambles-up-front"}))
    trace = recorded_once.trace("ep-multiplexing", "v2-device-staging", options)

    lanes = drawn(Timeline(trace), CALLS)

    assert [spans[-1][2:] for spans in lanes.values()] == [
        ("blocked", "≠ broadcast #34 slot 2"), ("blocked", "≠ all-reduce #34 slot 3"),
    ]  # fmt: skip
