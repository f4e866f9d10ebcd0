"""Moving a view keeps what it promises: the point under the mouse, the width, the bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline.viewport import MAX_SPAN_NS, MIN_SPAN_NS, Viewport

times = st.integers(-(2**61), 2**61)
factors = st.floats(1e-6, 1e6)


@st.composite
def viewports(draw: st.DrawFn) -> Viewport:
    t0 = draw(times)
    return Viewport(t0, t0 + draw(st.integers(MIN_SPAN_NS, 2**60)))


bounds = viewports().map(lambda view: (view.t0, view.t1))


@given(viewports(), factors, st.floats(0, 1))
def test_zooming_keeps_the_point_under_the_mouse(
    view: Viewport, factor: float, share: float
) -> None:
    at = view.t0 + round(view.span_ns * share)

    zoomed = view.zoom(factor, at)

    was, now = (at - view.t0) / view.span_ns, (at - zoomed.t0) / zoomed.span_ns
    assert abs(was - now) <= 1 / zoomed.span_ns + 1e-9


@given(viewports(), factors)
def test_zooming_stays_between_the_narrowest_and_the_widest_view(
    view: Viewport, factor: float
) -> None:
    assert MIN_SPAN_NS <= view.zoom(factor).span_ns <= MAX_SPAN_NS


@given(viewports(), st.floats(1, 100))
def test_zooming_in_shows_part_of_what_was_shown(view: Viewport, factor: float) -> None:
    zoomed = view.zoom(factor)

    assert view.t0 <= zoomed.t0
    assert zoomed.t1 <= view.t1


@given(viewports())
def test_zooming_by_one_changes_nothing_up_to_a_floats_precision(view: Viewport) -> None:
    assert abs(view.zoom(1.0).span_ns - view.span_ns) <= view.span_ns * 2**-52


@given(viewports(), st.floats(-10, 10))
def test_panning_keeps_the_width(view: Viewport, fraction: float) -> None:
    panned = view.pan(fraction)

    assert panned.span_ns == view.span_ns
    assert panned.t0 - view.t0 == round(view.span_ns * fraction)


@given(viewports(), times)
def test_centring_puts_the_time_in_the_middle(view: Viewport, ts_ns: int) -> None:
    centred = view.centre(ts_ns)

    assert centred.centre_ns == ts_ns
    assert centred.span_ns == view.span_ns


@given(viewports(), viewports())
def test_fitting_shows_the_whole_range(view: Viewport, other: Viewport) -> None:
    fitted = view.fit(other.t0, other.t1)

    assert fitted.t0 <= other.t0
    assert other.t1 <= fitted.t1


@given(viewports(), bounds)
def test_clamping_stays_within_bounds_and_keeps_a_width_that_fits(
    view: Viewport, limits: tuple[int, int]
) -> None:
    clamped = view.clamp(limits)

    assert limits[0] <= clamped.t0 < clamped.t1 <= limits[1]
    assert clamped.span_ns == min(view.span_ns, limits[1] - limits[0])
    assert clamped.clamp(limits) == clamped


@given(bounds)
def test_a_view_within_bounds_is_left_alone(limits: tuple[int, int]) -> None:
    assert Viewport(*limits).clamp(limits) == Viewport(*limits)


def test_of_a_trace_of_a_nanosecond_the_view_shows_no_more_than_there_is() -> None:
    assert Viewport(5, 5 + MIN_SPAN_NS).clamp((5, 6)) == Viewport(5, 6)
