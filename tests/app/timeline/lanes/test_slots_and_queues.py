"""Lanes of slots and of the waiting queue: their spans, names, and what is said of a selection."""

from __future__ import annotations

from typing import Any

from stepscope.app.palette import NAME, SPAN
from stepscope.app.present.blocks import AtRequest, Block, Links, Paragraph, Runs
from stepscope.app.present.details import span_blocks
from stepscope.app.timeline import SpanView, Timeline
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import drawn, spans_of
from tests.traces import trace_of

ROW = {"phase": "decode", "slot": 0}


def recycling(num_waiting: int = 1) -> Trace:
    """`a` and then `b` in slot 0, while others wait; slot 0 is not cleared between them."""
    waits = [f"w{number:02}" for number in range(num_waiting)]
    lives = (
        (0, "a", "arrive"), (0, "b", "arrive"), (0, "a", "admit"),
        *((1, name, "arrive") for name in waits), (30, "a", "finish"), (30, "b", "admit"),
    )  # fmt: skip
    claims = ((0, 0, "claim", "a"), (30, 2, "release", "a"), (30, 3, "claim", "b"))
    rows = ((0, "a", 3), (1, "a", 1), (3, "b", 1))
    lengths = ((0, 10, 3), (1, 20, 4), (3, 40, 5))
    return trace_of(
        steps=[{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(4)],
        lifecycle=[{"ts_ns": ts, "request": name, "event": event} for ts, name, event in lives],
        allocations=[
            {"ts_ns": ts, "step": step, "resource": "slot", "id": 0, "op": op, "owner": owner}
            for ts, step, op, owner in claims
        ],
        batch_rows=[
            {
                **ROW,
                "step": step,
                "ts_ns": 10 * step,
                "request": name,
                "num_computed": 0,
                "num_tokens": num,
            }
            for step, name, num in rows
        ],
        slot_tokens=[
            {"slot": 0, "step": step, "ts_ns": ts, "num_tokens": num} for step, ts, num in lengths
        ],
    )


def told(blocks: list[Block]) -> str:
    return " ".join(block.text for block in blocks if isinstance(block, Paragraph))


def first(timeline: Timeline, section: str, label: str) -> list[SpanView]:
    lane = next(each for each in timeline.lanes if (each.section, each.label) == (section, label))
    return spans_of(timeline, lane.id)


def test_a_slot_shows_who_was_in_it_and_what_the_one_before_left_there() -> None:
    trace = recycling()
    timeline = Timeline.of(trace)

    assert drawn(timeline, SLOTS) == {
        "slot 0": [(0, 20, "decode", "a"), (20, 30, "idle", "a"), (30, 40, "decode", "b")],
        "slot 0 · old tokens": [(30, 40, "held", "old tokens, 4 in all")],
    }
    *_, taken = first(timeline, SLOTS, "slot 0")
    assert "b was in slot 0 for 10 ns and never left it: decode 10 ns" in told(
        [*span_blocks(taken, timeline, trace)]
    )
    (left,) = first(timeline, SLOTS, "slot 0 · old tokens")
    assert "Slot 0 held 4 tokens while b used it, of which 0 were its own" in told(
        [*span_blocks(left, timeline, trace)]
    )
    assert [hit.lane for hit in timeline.find("slot 0") if hit.kind == "slot"] == [taken.lane]


def test_a_position_of_the_queue_shows_who_was_there_and_leads_to_the_request() -> None:
    trace = recycling()
    timeline = Timeline.of(trace)

    lanes = drawn(timeline, WAITING_QUEUE)

    assert {
        name: [(each[0], each[1], each[3]) for each in spans] for name, spans in lanes.items()
    } == {"position 0": [(0, 30, "b"), (30, 40, "w00")], "position 1": [(1, 30, "w00")]}
    head, moved_up = first(timeline, WAITING_QUEUE, "position 0")
    assert timeline.request_in(head) == (0, "b")
    assert head.state != moved_up.state
    assert {head.state, moved_up.state} <= {*range(SPAN + 1, NAME)}
    blocks = [*span_blocks(head, timeline, trace)]
    assert "b was at position 0 of the waiting queue for 30 ns" in told(blocks)
    links = [link.to for block in blocks if isinstance(block, Links) for link in block.choices]
    assert AtRequest(0, "b") in links
    assert not any(isinstance(block, Runs) for block in blocks)


def test_a_long_queue_is_collapsed_at_first_and_a_short_one_is_open() -> None:
    assert WAITING_QUEUE not in Timeline.of(recycling()).collapsed_at_first
    assert WAITING_QUEUE in Timeline.of(recycling(num_waiting=20)).collapsed_at_first


def test_who_waits_is_not_busy_in_the_sums_of_a_range() -> None:
    timeline = Timeline.of(recycling())
    lane = next(each.id for each in timeline.lanes if each.section == WAITING_QUEUE)

    sums: dict[int, Any] = timeline.sums(lane, 0, 40)

    assert {state: each.ns for state, each in sums.items()} == {1: 40}
    assert timeline.area(0, 40, [lane]).by_state.select("state", "ns").rows() == [("waiting", 40)]


def test_a_trace_without_slots_or_waits_has_no_lane_of_them() -> None:
    trace = trace_of(steps=[{"step": 0, "ts_ns": 0, "kind": "decode", "dur_ns": 5}])

    assert {lane.section for lane in Timeline.of(trace).lanes} == {"steps"}
