"""What an area adds up to, on traces that are small enough to add up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.selection import Pick
from stepscope.app.timeline.area.sums import OTHERS
from stepscope.app.timeline.area.which_lanes import area_lanes, next_lanes
from tests.app.timeline.profiles import call, kernel
from tests.traces import trace_of

BLOCK = {"task": 1, "block": 0, "shape": "AIC", "group": 0, "core": 0, "core_kind": "AIC"}


def streams(*kernels: dict[str, object]) -> Timeline:
    return Timeline.of(trace_of(spans=kernels))


def test_a_span_that_is_cut_counts_by_its_part_inside() -> None:
    timeline = streams(kernel("a", 0, 100), kernel("a", 200, 100), kernel("b", 290, 500, stream=8))

    sums = timeline.area(50, 300, range(len(timeline.lanes)))

    assert sums.by_name.select("name", "num_spans", "ns").rows() == [("a", 2, 150), ("b", 1, 10)]
    assert (sums.num_spans, sums.num_cut) == (3, 2)


def test_what_only_touches_an_edge_is_outside() -> None:
    timeline = streams(kernel("a", 0, 100), kernel("b", 100, 100), kernel("c", 200, 100))

    assert timeline.area(100, 200, [0]).by_name["name"].to_list() == ["b"]


def test_percentiles_are_those_of_numpy() -> None:
    timeline = streams(*(kernel("a", 1_000 * at, at) for at in range(1, 101)))

    row = timeline.area(*timeline.bounds, [0]).by_name.row(0, named=True)

    quantiles = [round(np.percentile(range(1, 101), at)) for at in (50, 90, 99)]
    assert [row["p50_ns"], row["p90_ns"], row["p99_ns"], row["max_ns"]] == [*quantiles, 100]
    assert row["mean_ns"] == pytest.approx(50.5)


def test_the_time_for_which_a_core_was_held_stands_apart() -> None:
    block = {**BLOCK, "dispatch_ns": 100, "ts_ns": 300, "end_ns": 400}
    tasks = [{"task": 1, "name": "qk", "shape": "AIC", "num_blocks": 1, "ts_ns": 0}]
    timeline = Timeline.of(trace_of(core_spans=[block], tasks=tasks))

    sums = timeline.area(0, 500, [0])

    lane = sums.by_lane.row(0, named=True)
    assert (lane["busy_ns"], lane["held_ns"], lane["idle_ns"]) == (100, 200, 200)
    name = sums.by_name.row(0, named=True)
    assert (name["name"], name["num_spans"], name["ns"], name["held_ns"]) == ("qk", 1, 100, 200)
    assert dict(sums.by_state.select("state", "ns").iter_rows()) == {"AIC": 100, "held": 200}


def test_a_lane_is_busy_once_where_calls_are_nested_and_each_call_counts() -> None:
    spans = [call("outer", 0, 100), call("inner", 10, 50), call("innermost", 20, 10)]
    timeline = Timeline.of(trace_of(spans=spans))

    sums = timeline.area(0, 200, range(len(timeline.lanes)))

    lanes = sums.by_lane
    assert lanes.select("num_spans", "busy_ns", "idle_ns", "ns").rows() == [(3, 100, 100, 160)]


def test_a_pivot_gathers_the_names_that_took_least() -> None:
    kernels = [kernel("a", 0, 50), kernel("b", 60, 30), kernel("c", 100, 5), kernel("d", 110, 1)]
    timeline = streams(*kernels, kernel("a", 0, 7, stream=8))

    names, lanes, ns = timeline.area(0, 200, [0, 1]).pivot(2)

    assert names == ["a", "b", OTHERS]
    assert lanes["lane"].to_list() == [0, 1]
    assert ns.tolist() == [[50, 30, 6], [7, 0, 0]]


def test_a_span_may_be_called_like_a_column() -> None:
    for name in ("lane", "name", "ns", "other names"):
        timeline = streams(kernel(name, 0, 50), kernel("b", 60, 30))

        sums = timeline.area(0, 200, [0])

        assert sums.by_name["name"].to_list() == [name, "b"]
        assert sums.pivot(8)[0] == [name, "b"]


def test_a_row_picks_its_spans() -> None:
    timeline = streams(kernel("a", 0, 50), kernel("b", 60, 30), kernel("a", 100, 5, stream=8))

    sums = timeline.area(0, 200, [0, 1])

    picked = sums.picked("name", "a").select("lane", "start", "ns").rows()
    assert picked == [(0, 0, 50), (1, 100, 5)]
    assert len(sums.picked("state", "kernel")) == 3
    assert len(sums.picked("lane", "1")) == 1
    assert sums.picked("name", "not there").is_empty()
    assert [*sums.first_of(Pick("name", "a"))] == [(0, 0)]


def test_absurd_times_add_up_without_overflow() -> None:
    timeline = streams(*(kernel("a", 0, 2**62, stream=at) for at in range(4)))

    sums = timeline.area(*timeline.bounds, range(4))

    assert sums.by_name["ns"].to_list() == [2**63 - 1]
    assert sums.by_name["max_ns"][0] <= 2**63 - 1


def test_counters_and_an_empty_area_add_up_to_nothing() -> None:
    counters = [{"ts_ns": 0, "name": "n", "value": 1.0}]
    timeline = Timeline.of(trace_of(counters=counters, spans=[kernel("a", 0, 5)]))

    sums = timeline.area(6, 9, range(len(timeline.lanes)))

    assert (sums.num_spans, sums.by_name.rows(), len(sums.by_lane)) == (0, [], 1)
    assert sums.by_lane["idle_ns"].to_list() == [3]


def test_lanes_are_those_marked_else_the_section_then_one_then_all() -> None:
    spans = [kernel("a", 0, 50), kernel("b", 60, 30, stream=8), call("launch", 0, 5)]
    timeline = Timeline.of(trace_of(spans=spans))

    assert area_lanes(timeline, 0, ()) == (0, 1)
    assert area_lanes(timeline, 0, (2,)) == (2,)
    alone = next_lanes(timeline, 0, ())
    every = next_lanes(timeline, 0, alone)
    assert (alone, every, next_lanes(timeline, 0, every)) == ((0,), (0, 1, 2), ())
