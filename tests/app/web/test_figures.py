"""The charts."""

from __future__ import annotations

import numpy as np
from plotly.graph_objects import Figure

from stepscope.app.timeline import Composition
from stepscope.app.web import figures
from tests.app.web.small_traces import conflict_trace, loaded_of
from tests.traces import trace_of


def bars(figure: Figure, name: str) -> list[float]:
    return list(next(trace for trace in figure.data if trace.name == name).y)


def test_tokens_are_stacked_by_phase_under_the_budget() -> None:
    figure = figures.tokens_near(Composition.of(conflict_trace()), 2)

    assert bars(figure, "prefill") == [192, 0, 0, 0, 0, 0]
    assert bars(figure, "decode") == [0, 3, 3, 3, 3, 3]
    assert bars(figure, "budget") == [256] * 6


def test_only_steps_near_by_are_drawn() -> None:
    steps = [{"step": at, "kind": "decode", "num_decode_tokens": at} for at in range(1000)]

    figure = figures.tokens_near(Composition.of(trace_of(steps=steps)), 500)

    assert bars(figure, "decode") == list(range(500 - figures.NEAR, 501 + figures.NEAR))


def test_a_budget_far_above_the_tokens_is_said_and_not_drawn_to_scale() -> None:
    steps = [{"step": 0, "kind": "decode", "num_decode_tokens": 4, "token_budget": 8192}]

    figure = figures.tokens_near(Composition.of(trace_of(steps=steps)), 0)

    assert figure.layout.annotations[0].text == "budget 8,192 ↑"
    assert figure.layout.yaxis.range[1] < 10


def test_it_is_said_over_the_whole_run_as_well_and_scales_no_other_chart() -> None:
    steps = [
        {"step": at, "kind": "decode", "num_decode_tokens": 4, "token_budget": 8192,
         "num_running": 40}
        for at in range(3)
    ]  # fmt: skip

    figure = figures.overview(Composition.of(trace_of(steps=steps)), 0)

    assert "budget 8,192 ↑" in [each.text for each in figure.layout.annotations]
    assert figure.layout.yaxis.range[1] < 10
    assert figure.layout.yaxis2.range is None


def test_many_steps_are_shown_by_the_means_of_neighbours() -> None:
    num_steps = 10 * figures.POINTS
    steps = [{"step": at, "kind": "decode", "num_running": at % 10} for at in range(num_steps)]

    figure = figures.overview(Composition.of(trace_of(steps=steps)), None)

    assert len(bars(figure, "running")) == figures.POINTS
    assert np.allclose(bars(figure, "running"), 4.5)


def test_what_a_trace_does_not_tell_has_no_chart() -> None:
    steps = [{"step": 0, "kind": "decode", "num_decode_tokens": 4}]

    figure = figures.overview(Composition.of(trace_of(steps=steps)), 0)
    assert figure.layout.xaxis.title.text == "step"

    assert [annotation.text for annotation in figure.layout.annotations] == [
        "tokens a step · steps 0 to 0"
    ]


def test_the_load_of_an_empty_trace_is_an_empty_chart() -> None:
    load = loaded_of(trace_of()).timeline.load(100)

    assert not figures.load(load).data


def test_a_step_that_does_not_tell_its_tokens_has_no_bar_and_not_one_of_zero() -> None:
    known = {"num_prefill_tokens": 0, "num_decode_tokens": 5}
    steps = [{"step": 1, "kind": "decode", **known}, {"step": 2, "kind": "decode"}]

    drawn = figures.tokens_near(Composition.of(trace_of(steps=steps)), 0)

    assert bars(drawn, "decode")[0] == 5
    assert np.isnan(bars(drawn, "decode")[1])


def test_pointing_at_a_mean_of_steps_says_which_they_are() -> None:
    told = {"kind": "decode", "num_prefill_tokens": 0, "num_decode_tokens": 5}
    few, many = (
        figures.overview(
            Composition.of(trace_of(steps=[{"step": n, **told} for n in range(num)])), 0
        )
        for num in (2, 2 * figures.POINTS)
    )

    assert list(few.data[0].text) == ["step 0", "step 0", "step 1", "step 1"]
    assert many.data[0].text[1] == "mean of steps 2 to 3"


def test_each_step_is_drawn_around_its_number_which_what_is_nearest_leads_to() -> None:
    rows = [
        {"step": step, "ts_ns": step * 10, "dur_ns": 10, "kind": "decode",
         "num_prefill_tokens": 0, "num_decode_tokens": 5 * step}
        for step in (7, 8)
    ]  # fmt: skip
    alone, two = (
        figures.overview(Composition.of(trace_of(steps=rows[:number])), None) for number in (1, 2)
    )

    decode = next(each for each in alone.data if each.name == "decode")
    assert [decode.x.tolist(), decode.y.tolist()] == [[6.5, 7, 7.5], [35, 35, 35]]
    decode = next(each for each in two.data if each.name == "decode")
    assert [decode.x.tolist(), decode.y.tolist()] == [[6.5, 7, 8, 8.5], [35, 35, 40, 40]]
    assert list(decode.customdata) == [7, 7, 8, 8]
    assert decode.line.shape == "hvh"
    assert two.layout.hoverdistance == -1
    assert two.layout.xaxis.tickvals == (7, 8)
    assert two.layout.xaxis.range == (6.5, 10.5)  # no step is as wide as the chart
