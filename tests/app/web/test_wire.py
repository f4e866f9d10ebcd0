"""What is sent to the browser."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.palette import MIXED
from stepscope.app.web import wire
from stepscope.app.web.loaded import LoadedTrace
from tests.app.web.small_traces import STEP_NS, conflict_trace, loaded_of
from tests.traces import trace_of


@cache
def small() -> LoadedTrace:
    return loaded_of(conflict_trace())


def ask(loaded: LoadedTrace, t0: float, t1: float, **more: Any) -> dict[str, Any]:
    lanes = [lane.id for lane in loaded.timeline.lanes]
    return wire.picture(
        loaded, {"t0": t0, "t1": t1, "width": 100, "lanes": lanes, "hide": [], **more}
    )


def test_few_spans_come_one_by_one_with_their_labels() -> None:
    loaded = small()

    sent = ask(loaded, 0, loaded.length)

    steps = sent["sparse"][0]
    assert list(steps["start"]) == [step * STEP_NS for step in range(6)]
    assert [sent["labels"][at] for at in steps["label"]] == ["P 3"] + ["D 3"] * 5


def test_many_spans_come_as_pixels() -> None:
    spans = [{"ts_ns": at * 10, "dur_ns": 5, "track": "t", "name": "n"} for at in range(1000)]
    loaded = loaded_of(trace_of(spans=spans))

    sent = ask(loaded, 0, loaded.length)

    assert sent["dense"] == [0]
    assert sent["sparse"] == []
    density = sent["density"]
    assert density.shape == (1, 100)
    assert np.all(np.abs(density[0, :-1] / 255 - 0.5) < 0.01)


def test_a_mixed_step_among_thousands_of_decodes_is_sent_as_a_mark() -> None:
    steps = [{"step": n, "ts_ns": 10 * n, "dur_ns": 10, "kind": "decode"} for n in range(2000)]
    steps[1234]["kind"] = "mixed"
    loaded = loaded_of(trace_of(steps=steps))

    sent, hidden = (ask(loaded, 0, loaded.length, hide=hide) for hide in ([], ["mixed"]))

    assert sent["marked"] == [0]
    assert np.flatnonzero(sent["mark"][0] == MIXED).tolist() == [61]
    assert hidden["marked"] == []


def test_the_parts_of_a_mixed_step_are_sent_none_of_them_as_nothing() -> None:
    step = {"dur_ns": 10, "kind": "mixed", "num_prefill_tokens": 99_999, "num_decode_tokens": 1}
    loaded = loaded_of(trace_of(steps=[{"step": 1, **step}]))

    (lane,) = ask(loaded, 0, loaded.length)["sparse"]

    assert lane["parts"].tolist() == [[0, 255, 1]]
    assert "parts" not in ask(small(), 0, STEP_NS)["sparse"][0]


def test_a_counter_comes_as_a_value_for_each_pixel() -> None:
    sent = ask(small(), 0, 6 * STEP_NS)

    heat = next(line for line in sent["counters"] if line["high"] == 2.0)

    assert len(heat["values"]) == 100
    assert (heat["low"], heat["high"]) == (0.0, 2.0)


def test_a_counter_that_never_changes_is_drawn_from_0_on_as_in_the_terminal() -> None:
    sample = {"name": "waiting", "value": 2.0, "unit": "requests"}
    loaded = loaded_of(trace_of(counters=[{**sample, "ts_ns": at} for at in (0, 100)]))

    (line,) = ask(loaded, 0, 100, lanes=[0])["counters"]

    assert (line["low"], line["high"]) == (0.0, 2.0)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False), st.integers(-5, 10**9))
def test_any_window_is_answered(t0: float, t1: float, width: int) -> None:
    sent = ask(small(), t0, t1, width=width, lanes=[0])

    assert sent["t0"] < sent["t1"]
    assert 1 <= sent["width"] <= wire.WIDEST


def test_lanes_that_are_not_there_are_left_out() -> None:
    assert ask(small(), 0, 100, lanes=[-1, 0, 10**6])["lanes"] == [0]


def test_hidden_states_leave_the_pixels() -> None:
    spans = [{"ts_ns": at * 10, "dur_ns": 5, "track": "t", "name": "n"} for at in range(1000)]
    loaded = loaded_of(trace_of(spans=spans))
    shade = set(ask(loaded, 0, 10_000)["state"].flat)

    hidden = ask(loaded, 0, 10_000, hide=[loaded.timeline.states[at].name for at in shade])

    assert not np.any(hidden["state"])


def test_a_lane_is_called_as_the_terminal_calls_it_when_it_is_pinned() -> None:
    trace = trace_of(
        lifecycle=[{"request": "r7", "event": "arrive"}, {"request": "r7", "event": "finish"}],
        spans=[{"ts_ns": at, "dur_ns": 9, "span": at, "track": "t", "name": "n"} for at in (0, 1)],
    )
    loaded = loaded_of(trace)

    sent = wire.model(loaded)["lanes"]

    for lane, its in zip(loaded.timeline.lanes, sent, strict=True):
        said = [each for each in (its["name"], its["part"]) if each]
        assert said == [each for each in (lane.group, lane.label) if each]


def test_an_empty_trace_has_a_model_and_a_picture() -> None:
    loaded = loaded_of(trace_of())

    assert wire.model(loaded)["lanes"] == []
    assert ask(loaded, 0, 1000)["sparse"] == []
