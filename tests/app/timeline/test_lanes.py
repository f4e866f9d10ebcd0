"""A trace's rows become lanes: which, in what order, and what is on them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stepscope.app.debug import Session
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.lanes.lane import natural
from stepscope.app.timeline.lanes.tracks import SAYS
from stepscope.ingest.trace import Trace
from tests.app.timeline.drawn_lanes import drawn, spans_of
from tests.tiers import slow
from tests.traces import trace_of


def test_core_groups_have_all_their_lanes_and_tell_held_from_running() -> None:
    block = {"task": 7, "block": 0, "shape": "MIX", "group": 0}
    trace = trace_of(
        core_spans=[
            {**block, "core": 0, "core_kind": "AIC", "dispatch_ns": 5, "ts_ns": 10, "end_ns": 30},
            {
                **block, "core": 0, "core_kind": "AIC", "block": 1, "slot": "pending",
                "dispatch_ns": 12, "ts_ns": 35, "end_ns": 40,
            },
            {**block, "core": 2, "core_kind": "AIV0", "dispatch_ns": 10, "ts_ns": 10, "end_ns": 30},
        ],
        tasks=[{"task": 7, "name": "qk_pv", "shape": "MIX", "num_blocks": 2}],
    )  # fmt: skip

    assert drawn(Timeline.of(trace), "core groups") == {
        "group 0 AIC": [
            (5, 10, "held", "held for qk_pv 0/2"),
            (10, 30, "MIX", "qk_pv 0/2"),
            (30, 35, "held", "held for qk_pv 1/2"),
            (35, 40, "MIX", "qk_pv 1/2"),
        ],
        "group 0 AIV0": [(10, 30, "MIX", "qk_pv 0/2")],
        "group 0 AIV1": [],
    }


def test_two_blocks_on_one_core_at_once_are_both_seen() -> None:
    block = {"block": 0, "shape": "AIC", "group": 3, "core": 3, "core_kind": "AIC"}
    trace = trace_of(
        core_spans=[
            {**block, "task": 1, "ts_ns": 0, "end_ns": 20},
            {**block, "task": 2, "ts_ns": 10, "end_ns": 30},
        ]
    )

    lanes = drawn(Timeline.of(trace), "core groups")

    assert lanes["group 3 AIC"] == [(0, 20, "AIC", "task 1 0")]
    assert lanes["group 3 AIC'"] == [(10, 30, "AIC", "task 2 0")]


def test_a_request_waits_computes_is_preempted_and_computes_again() -> None:
    row = {"request": "r1", "phase": "prefill", "num_tokens": 8}
    trace = trace_of(
        lifecycle=[
            {"ts_ns": 0, "step": 1, "request": "r1", "event": "arrive"},
            {"ts_ns": 10, "step": 1, "request": "r1", "event": "admit"},
            {"ts_ns": 20, "step": 1, "request": "r1", "event": "first-token"},
            {"ts_ns": 30, "step": 3, "request": "r1", "event": "preempt"},
            {"ts_ns": 60, "step": 5, "request": "r1", "event": "resume"},
            {"ts_ns": 70, "step": 5, "request": "r1", "event": "finish"},
        ],
        steps=[{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "prefill"} for n in (1, 2, 3, 4)]
        + [{"step": 5, "ts_ns": 60, "dur_ns": 10, "kind": "prefill"}],
        batch_rows=[
            {**row, "step": 1, "ts_ns": 10},
            {**row, "step": 2, "ts_ns": 20, "phase": "decode", "num_tokens": 1},
            {**row, "step": 5, "ts_ns": 60, "is_recompute": True},
        ],
    )

    assert drawn(Timeline.of(trace), "requests") == {
        "r1": [
            (0, 10, "waiting", "waiting"),
            (10, 20, "prefill", "P 8"),
            (20, 30, "decode", "D"),
            (30, 60, "preempted", "preempted"),
            (60, 70, "recompute", "R 8"),
        ]
    }


def test_a_request_that_is_turned_away_at_once_still_has_its_lane() -> None:
    trace = trace_of(
        lifecycle=[
            {"ts_ns": 0, "request": "r1", "event": "arrive"},
            {"ts_ns": 0, "request": "r1", "event": "reject"},
        ]
    )

    assert drawn(Timeline.of(trace), "requests") == {"r1": []}


def test_a_request_that_waits_at_the_end_waits_until_the_end() -> None:
    trace = trace_of(
        lifecycle=[{"ts_ns": 3, "request": "r1", "event": "arrive"}],
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 90, "kind": "idle"}],
    )

    assert drawn(Timeline.of(trace), "requests") == {"r1": [(3, 90, "waiting", "waiting")]}


def test_requests_stand_in_natural_order() -> None:
    names = ["req-10", "req-2", "1", "req-2b", "20", "3"]
    trace = trace_of(lifecycle=[{"request": name, "event": "arrive"} for name in names])

    labels = [lane.label for lane in Timeline.of(trace).lanes]

    assert labels == ["1", "3", "20", "req-2", "req-2b", "req-10"]
    assert natural("req-2") < natural("req-10")
    assert natural("req-10") < natural(f"req-{'9' * 5_000}") < natural(f"req-1{'0' * 5_000}")


def test_nested_spans_lie_below_each_other_and_instants_are_kept() -> None:
    span = {"track": "python 12 / thread 3", "category": "cpu_op"}
    trace = trace_of(
        spans=[
            {**span, "name": "step", "ts_ns": 0, "dur_ns": 100},
            {**span, "name": "matmul", "ts_ns": 10, "dur_ns": 20},
            {**span, "name": "mark", "ts_ns": 200, "form": "instant"},
            {**span, "name": "hangs", "ts_ns": 300, "form": "unfinished"},
        ],
        counters=[{"ts_ns": 399, "name": "memory", "value": 1.0}],
    )

    lanes = drawn(Timeline.of(trace), "CPU threads")

    times = {
        lane: [(start, end, name) for start, end, _, name in spans] for lane, spans in lanes.items()
    }
    assert times == {
        "python 12 thread 3": [(0, 100, "step"), (200, 200, "mark"), (300, 400, "hangs")],
        "python 12 thread 3'": [(10, 30, "matmul")],
    }


def test_sections_stand_in_the_same_order_in_every_trace() -> None:
    trace = trace_of(
        counters=[{"name": "memory", "value": 1.0}],
        spans=[{"track": "t", "name": "n", "dur_ns": 1}],
        lifecycle=[{"request": "a", "event": "arrive"}],
        core_spans=[{"task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0}],
        steps=[{"step": 1, "kind": "decode", "dur_ns": 5, "num_waiting": 3}],
    )

    timeline = Timeline.of(trace)

    sections = list(dict.fromkeys(lane.section for lane in timeline.lanes))
    assert sections == ["steps", "core groups", "requests", "tracks", "counters"]
    assert [lane.id for lane in timeline.lanes] == list(range(len(timeline.lanes)))
    assert [lane.label for lane in timeline.lanes if lane.kind == "counter"] == [
        "waiting",
        "memory",
    ]


def test_lanes_of_several_ranks_say_whose_they_are() -> None:
    trace = trace_of(
        steps=[{"rank": rank, "step": 1, "kind": "decode", "dur_ns": 5} for rank in (1, 0)],
        ranks=(0, 1),
    )

    groups = [(lane.rank, lane.group, lane.label) for lane in Timeline.of(trace).lanes]

    assert groups == [(0, "rank 0", "engine"), (1, "rank 1", "engine")]


def test_an_empty_trace_has_no_lanes_and_still_answers() -> None:
    timeline = Timeline.of(trace_of())

    assert timeline.bounds == (0, 1000)
    assert timeline.lanes == ()
    assert timeline.query(*timeline.bounds, 80, []).spans == []
    assert timeline.load(80).shares.shape == (0, 80)
    assert timeline.find("anything") == []


def test_what_a_span_is_called_cannot_steer_a_terminal() -> None:
    hostile = "\x1b[2J[red]\n"
    trace = trace_of(
        spans=[{"track": hostile, "name": hostile, "dur_ns": 5}],
        lifecycle=[{"request": hostile, "event": "arrive"}],
        counters=[{"name": hostile, "track": hostile, "unit": hostile, "value": 1.0}],
    )
    timeline = Timeline.of(trace)

    shown = [text for lane in timeline.lanes for text in (lane.label, lane.group)]
    shown += [span.label for lane in timeline.lanes for span in spans_of(timeline, lane.id)]
    shown += [timeline.at(lane.id, 0).label for lane in timeline.lanes if lane.kind == "counter"]  # type: ignore[union-attr]  # a counter has a value at 0

    assert all(text.isprintable() for text in shown)
    assert "·[2J[red]·" in shown


def test_times_at_the_edge_of_an_int64_do_not_overflow() -> None:
    trace = trace_of(
        spans=[
            {"track": "t", "name": "first", "ts_ns": -(2**63), "dur_ns": 5},
            {"track": "t", "name": "last", "ts_ns": 2**63 - 1, "dur_ns": 2**63 - 1},
        ]
    )
    timeline = Timeline.of(trace)

    picture = timeline.query(*timeline.bounds, 10, [lane.id for lane in timeline.lanes])

    assert timeline.bounds[0] < timeline.bounds[1]
    assert picture.count.sum() == 2
    assert picture.spans == [spans_of(timeline, 0)]


def test_rows_that_say_too_little_have_no_place_and_harm_nobody() -> None:
    silent = {
        "steps": ("step", "kind"),
        "batch_rows": ("step", "request", "phase", "num_tokens"),
        "lifecycle": ("request", "event"),
        "core_spans": ("task", "block", "shape", "group", "core"),
        "spans": ("track", "name"),
        "counters": ("name", "value"),
    }
    tables: dict[str, Any] = {
        table: [{"ts_ns": 7, **dict.fromkeys(columns)}, {"ts_ns": None, **dict.fromkeys(columns)}]
        for table, columns in silent.items()
    }
    trace = trace_of(**tables)

    timeline = Timeline.of(trace)
    session = Session(trace)

    assert timeline.bounds == (7, 8)
    assert [lane.section for lane in timeline.lanes] == ["steps"]
    assert timeline.find("none") == []
    assert session.state.waiting is None  # nobody told of a queue
    assert not session.next("event")


@slow
@pytest.mark.parametrize(
    "name", ["vllm_cpu_tiny_llama_preemptions.json.gz", "h100_qwen15_05b_chat.json.gz"]
)
def test_every_span_of_a_real_profile_is_on_the_timeline_once(shared_data: Path, name: str) -> None:
    trace = Trace.open(shared_data / "kineto" / name)
    timeline = Timeline.of(trace)

    shown = [
        span
        for lane in timeline.lanes
        if lane.section in SAYS
        for span in timeline.spans(lane.id, *timeline.bounds, 10**6)
    ]

    assert sorted(span.ref[1] for span in shown) == list(range(trace.num_rows("spans")))
    for before, after in pairwise(shown):
        assert before.lane != after.lane or before.end_ns <= after.start_ns


def test_steps_of_two_stages_of_a_pipeline_have_a_lane_each() -> None:
    steps = [
        {"step": 1, "ts_ns": 0, "dur_ns": 60, "kind": "decode", "pp_stage": 0},
        {"step": 2, "ts_ns": 20, "dur_ns": 60, "kind": "prefill", "pp_stage": 1},
        {"step": 3, "ts_ns": 60, "kind": "decode", "pp_stage": 0},
        {"step": 4, "ts_ns": 90, "dur_ns": 10, "kind": "decode", "pp_stage": 0},
    ]
    timeline = Timeline(trace_of(steps=steps))

    lanes = [lane for lane in timeline.lanes if lane.section == "steps"]

    assert [lane.label for lane in lanes] == ["stage 0", "stage 1"]
    drawn = [
        [(span.start_ns, span.end_ns) for span in timeline.spans(lane.id, 0, 200, 9)]
        for lane in lanes
    ]
    assert drawn == [[(0, 60), (60, 90), (90, 100)], [(20, 80)]]


def test_free_blocks_that_the_prefix_cache_finds_are_counted_beside_the_free() -> None:
    step = {"step": 1, "ts_ns": 0, "dur_ns": 60, "kind": "decode", "kv_blocks_free": 9}
    told = Timeline(trace_of(steps=[{**step, "kv_blocks_cached": 4}]))
    untold = Timeline(trace_of(steps=[step]))

    names = [lane.label for lane in told.lanes if lane.kind == "counter"]
    assert names == ["KV blocks free", "of these cached"]
    assert "of these cached" not in [lane.label for lane in untold.lanes]
