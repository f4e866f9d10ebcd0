"""Asking the timeline: pictures, single spans, neighbours, counters, load, composition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from stepscope.app.palette import (
    AIC,
    COUNTER,
    DECODE,
    MIX,
    NAME,
    NOTHING,
    PREFILL,
    STATES,
    WAITING,
    shade,
)
from stepscope.app.timeline import Composition, Timeline
from stepscope.app.timeline.model import MAX_LISTED
from tests.traces import trace_of

SPAN = {"track": "t", "name": "n"}


def steps(num: int, **columns: int) -> list[dict[str, object]]:
    return [
        {"step": n, "ts_ns": 100 * n, "dur_ns": 50, "kind": "decode", **columns} for n in range(num)
    ]


def test_few_spans_are_listed_and_many_are_only_painted() -> None:
    timeline = Timeline.of(trace_of(steps=steps(MAX_LISTED + 1)))

    few = timeline.query(0, 300, 30, [0])
    many = timeline.query(*timeline.bounds, 30, [0])

    assert [[span.start_ns for span in spans or ()] for spans in few.spans] == [[0, 100, 200]]
    assert many.spans == [None]
    assert (many.state == DECODE).all()


def test_a_picture_has_one_row_for_each_lane_asked_for_in_that_order() -> None:
    trace = trace_of(
        steps=steps(1),
        lifecycle=[{"ts_ns": 0, "request": "a", "event": "arrive"}],
        spans=[{**SPAN, "ts_ns": 0, "dur_ns": 10}],
    )
    timeline = Timeline.of(trace)

    picture = timeline.query(0, 10, 1, [2, 0, 2])

    assert [STATES[state].name for state in picture.state[:, 0]] == ["span 1", "decode", "span 1"]


def test_a_view_below_a_nanosecond_a_pixel_repeats_its_pixels() -> None:
    timeline = Timeline.of(trace_of(spans=[{**SPAN, "ts_ns": 1, "dur_ns": 1}]))

    picture = timeline.query(0, 4, 8, [0])

    assert (picture.state[0] > 0).tolist() == [False, False, True, True] + [False] * 4


def test_a_hidden_state_is_not_painted() -> None:
    timeline = Timeline.of(trace_of(steps=steps(3)))

    picture = timeline.query(0, 300, 3, [0], hidden={DECODE})

    assert (picture.state == NOTHING).all()
    assert (picture.density == 0).all()
    assert (picture.count == 1).all()


def test_at_gives_the_span_under_the_cursor_and_nothing_between_spans() -> None:
    timeline = Timeline.of(trace_of(steps=steps(2)))

    found = timeline.at(0, 49)

    assert found is not None
    assert (found.start_ns, found.end_ns, found.ref) == (0, 50, ("steps", 0))
    assert timeline.at(0, 50) is None
    assert timeline.row(found.ref)["kind"] == "decode"


def test_at_prefers_what_takes_time_to_an_instant() -> None:
    instant = {**SPAN, "ts_ns": 50, "form": "instant", "name": "mark"}
    timeline = Timeline.of(trace_of(spans=[instant, {**SPAN, "ts_ns": 50, "dur_ns": 9}]))

    found = timeline.at(0, 50)

    assert found is not None
    assert found.label == "n"


def test_neighbours_are_the_spans_that_begin_next() -> None:
    timeline = Timeline.of(trace_of(steps=steps(3)))

    forward = [timeline.next_span(0, ts_ns) for ts_ns in (-1, 0, 150, 200)]
    backward = [timeline.previous_span(0, ts_ns) for ts_ns in (0, 1, 200, 999)]

    assert [span.start_ns if span else None for span in forward] == [0, 100, 200, None]
    assert [span.start_ns if span else None for span in backward] == [None, 0, 100, 200]


def test_a_counter_holds_each_value_until_the_next_and_is_unknown_before_the_first() -> None:
    samples = [(100, 5.0), (200, float("nan")), (300, 9.0)]
    trace = trace_of(
        counters=[{"ts_ns": t, "name": "c", "value": v, "unit": "MB"} for t, v in samples],
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 400, "kind": "idle"}],
    )
    timeline = Timeline.of(trace)
    lane = next(lane.id for lane in timeline.lanes if lane.kind == "counter")

    series = timeline.series(lane, 0, 400, 4)

    assert series is not None
    assert series.values.tolist()[1:] == [5.0, 5.0, 9.0]
    assert math.isnan(series.values[0])
    assert (series.low, series.high, series.unit) == (5.0, 9.0, "MB")
    sample = timeline.at(lane, 250)
    assert sample is not None
    assert (sample.start_ns, sample.end_ns, sample.label) == (100, 300, "5 MB")
    assert sample.state == COUNTER
    assert timeline.at(lane, 99) is None
    assert timeline.series(0, 0, 400, 4) is None


def test_load_is_the_share_of_the_cores_that_each_shape_keeps_busy() -> None:
    aic, aiv = {"core": 0, "core_kind": "AIC"}, {"core": 1, "core_kind": "AIV0"}
    mix = {"task": 2, "block": 0, "shape": "MIX", "group": 0, "ts_ns": 50, "end_ns": 100}
    trace = trace_of(
        core_spans=[
            {**mix, **aic, "task": 1, "shape": "AIC", "ts_ns": 0, "end_ns": 50},
            {**mix, **aic},
            {**mix, **aiv},
        ],
        steps=steps(1, num_decode_tokens=8),
    )

    load = Timeline.of(trace).load(2, 0, 100)

    assert (load.what, load.states) == ("cores busy", (AIC, MIX))
    assert load.shares == pytest.approx(np.array([[1 / 3, 0], [0, 2 / 3]]))


def test_load_without_core_groups_is_tokens_against_the_busiest_pixel() -> None:
    trace = trace_of(
        steps=[
            {"step": 1, "ts_ns": 0, "dur_ns": 100, "kind": "prefill", "num_prefill_tokens": 80},
            {"step": 2, "ts_ns": 100, "dur_ns": 200, "kind": "decode", "num_decode_tokens": 40},
        ]
    )

    load = Timeline.of(trace).load(6)

    assert (load.what, load.states) == ("tokens", (PREFILL, DECODE))
    assert load.shares == pytest.approx(
        np.array([[1, 1, 0, 0, 0, 0], [0, 0, 0.25, 0.25, 0.25, 0.25]])
    )


def test_load_of_steps_that_do_not_say_how_long_they_took_reaches_to_the_next() -> None:
    decode = {"kind": "decode", "num_decode_tokens": 40}
    told = [{"step": step, "ts_ns": 100 * step, **decode} for step in range(4)]
    trace = trace_of(steps=[*told, {"step": 4, "ts_ns": 400, **decode, "num_decode_tokens": 9}])

    load = Timeline.of(trace).load(8)

    assert (load.what, load.states) == ("tokens", (PREFILL, DECODE))
    assert load.shares[1, :-1] == pytest.approx(np.ones(7), rel=0.01)


def test_load_looks_at_no_batches_where_only_the_last_step_does_not_say_how_long_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stepscope.app.timeline.load.known_steps", None)
    decode = {"kind": "decode", "num_decode_tokens": 40}
    told = [{"step": step, "ts_ns": 100 * step, "dur_ns": 50, **decode} for step in range(4)]

    load = Timeline.of(trace_of(steps=[*told, {"step": 4, "ts_ns": 400, **decode}])).load(8)

    assert load.shares[1].tolist() == pytest.approx([1, 0] * 4, abs=0.02)


def test_load_of_a_bare_profile_is_how_much_ran() -> None:
    trace = trace_of(
        spans=[{**SPAN, "category": "cpu_op", "ts_ns": 0, "dur_ns": 50}],
        steps=[{"step": 1, "ts_ns": 0, "dur_ns": 100, "kind": None}],
    )

    load = Timeline.of(trace).load(2)

    assert (load.what, load.states) == ("spans", (NAME,))
    assert load.shares.tolist() == [[1.0, 0.0]]


def test_composition_has_a_value_for_each_step_and_nan_where_nothing_is_known() -> None:
    trace = trace_of(
        steps=[
            {"step": 2, "ts_ns": 50, "kind": "decode", "num_decode_tokens": 3, "num_waiting": 0},
            {"step": 1, "ts_ns": 0, "kind": "prefill", "dur_ns": 40, "num_prefill_tokens": 9},
            {"rank": 1, "step": 1, "ts_ns": 0, "kind": "idle"},
        ]
    )

    composition = Composition.of(trace)

    assert composition.step.tolist() == [1, 2]
    assert composition.kind == ("prefill", "decode")
    assert composition.prefill_tokens[0] == 9
    assert math.isnan(composition.prefill_tokens[1])
    assert composition.waiting[1] == 0
    assert len(Composition.of(trace, rank=1)) == 1
    assert len(Composition.of(trace_of())) == 0


def test_a_category_has_the_same_shade_in_every_trace() -> None:
    assert shade("kernel") == shade("kernel")
    assert len({shade(f"category {n}") for n in range(100)}) == 4


def told(request: str, event: str, ts_ns: int) -> dict[str, Any]:
    return {"request": request, "event": event, "ts_ns": ts_ns}


def test_the_load_of_a_list_of_arrivals_is_how_many_arrived() -> None:
    times = (0, 10, 11, 12, 55, 99)

    load = Timeline.of(
        trace_of(lifecycle=[told(f"r{at}", "arrive", ts) for at, ts in enumerate(times)])
    ).load(10)

    assert (load.what, load.states) == ("arrivals", (WAITING,))
    assert (load.shares[0] * 3).round().tolist() == [1, 3, 0, 0, 0, 1, 0, 0, 0, 1]


def test_the_load_of_requests_without_steps_is_how_many_there_are_in_each_state() -> None:
    rows = [
        told("a", "arrive", 0), told("a", "admit", 50_000), told("a", "finish", 100_000),
        told("b", "arrive", 25_000), told("b", "admit", 50_000), told("b", "finish", 75_000),
    ]  # fmt: skip

    load = Timeline.of(trace_of(lifecycle=rows)).load(4)

    assert load.what == "requests"
    waiting = load.shares[load.states.index(WAITING)]
    assert waiting.tolist() == pytest.approx([0.5, 1, 0, 0], abs=1e-3)
    assert load.shares.sum(axis=0).tolist() == pytest.approx([0.5, 1, 1, 0.5], abs=1e-3)


def test_the_load_of_counters_alone_is_the_first_of_them_on_its_own_scale() -> None:
    samples = [(0, 10.0), (50_000, 40.0), (75_000, 20.0), (100_000, 20.0)]
    rows = [{"ts_ns": ts_ns, "track": "t", "name": "kv usage", "value": value}
            for ts_ns, value in samples]  # fmt: skip

    load = Timeline.of(trace_of(counters=rows)).load(4)

    assert (load.what, load.states) == ("kv usage", (COUNTER,))
    assert load.shares[0].tolist() == pytest.approx([0.25, 0.25, 1, 0.5], abs=0.01)
