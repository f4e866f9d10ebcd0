"""Figures that a notebook shows of a trace."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from stepscope import StepscopeError, Trace, check
from stepscope.app.palette import STATES
from stepscope.app.timeline import Timeline
from stepscope.ingest.errors import ConfigError, MissingExtra
from tests.app.web.small_traces import HOSTILE, conflict_trace
from tests.traces import trace_of


def drawn(figure: Any) -> set[tuple[int, float, float, str]]:
    """The row, begin, length and colour of every bar, in µs."""
    return {
        (row, round(base, 3), round(length, 3), bar.marker.color)
        for bar in figure.data
        for row, base, length in zip(bar.y, bar.base, bar.x, strict=True)
    }


def test_every_span_of_a_small_trace_is_drawn_when_it_was_in_the_colour_of_its_state() -> None:
    trace = conflict_trace()
    timeline = Timeline.of(trace)
    lanes = [lane for lane in timeline.lanes if lane.kind != "counter"]
    origin = timeline.bounds[0]

    assert drawn(trace.timeline()) == {
        (row, (span.start_ns - origin) / 1000, (span.end_ns - span.start_ns) / 1000,
         STATES[span.state].colour)
        for row, lane in enumerate(lanes)
        for span in timeline.spans(lane.id, *timeline.bounds, 10_000)
    }  # fmt: skip


@pytest.mark.parametrize("draw", [Trace.timeline, Trace.blame])
def test_a_bar_stays_in_its_row(draw: Any) -> None:
    assert {bar.width for bar in draw(conflict_trace()).data} == {0.85}


def test_a_finding_is_drawn_with_the_lanes_around_it() -> None:
    trace = conflict_trace()
    finding = check(trace).findings[0]
    figure = trace.timeline(finding)

    assert any("AIV1" in name for name in figure.layout.yaxis.ticktext)
    [frame] = figure.layout.shapes
    assert frame.x0 == pytest.approx((finding.ts_ns or 0) / 1000)


def test_a_window_is_what_is_shown() -> None:
    figure = conflict_trace().timeline(window=(100_000, 200_000))

    assert figure.layout.xaxis.range == (100, 200)
    assert figure.layout.xaxis.ticksuffix == " µs"


def test_a_lane_of_many_spans_is_drawn_by_its_pixels() -> None:
    spans = [
        {
            "ts_ns": 100 * at,
            "dur_ns": 60,
            "track": "GPU 0 / stream 1",
            "name": "k",
            "category": "kernel",
        }
        for at in range(5_000)
    ]
    figure = trace_of(spans=spans).timeline()

    assert sum(len(bar.y) for bar in figure.data) <= 1_000
    assert figure.data[0].customdata[0].startswith("mostly ")


def test_each_of_the_slowest_requests_has_a_bar() -> None:
    figure = conflict_trace().blame(most=2)

    assert {row for bar in figure.data for row in bar.y} == {0, 1}
    assert "2 of 3 requests, the slowest" in figure.layout.title.text


def test_text_of_a_trace_is_no_markup_in_a_figure() -> None:
    trace = conflict_trace(request=HOSTILE, push=HOSTILE, trace=HOSTILE)

    for figure in (trace.timeline(), trace.blame()):
        assert "<img" not in figure.to_json().replace("\\u003c", "<")


@pytest.mark.parametrize("draw", [Trace.timeline, Trace.blame])
def test_an_empty_trace_has_nothing_to_draw_and_says_so(draw: Any) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        draw(trace_of(name="empty.trace"))


def test_a_window_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="is no window"):
        conflict_trace().timeline(window=(5, 5))


def test_without_plotly_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "stepscope.app.notebook", raising=False)
    monkeypatch.setitem(sys.modules, "plotly", None)

    with pytest.raises(MissingExtra, match=r"pip install 'stepscope\[web\]'") as told:
        conflict_trace().timeline()
    assert isinstance(told.value, StepscopeError)
