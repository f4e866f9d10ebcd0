"""Every pixel is exactly right, compared with going through the spans one by one."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.app.timeline.lanes.lane import SPAN_COLUMNS, depths
from stepscope.app.timeline.span_index import SpanIndex, pixel_edges
from stepscope.app.timeline.spans import compiled
from stepscope.app.timeline.spans.span_columns import of_frame
from stepscope.app.timeline.spans.sublanes import in_sublanes
from tests.tiers import slow

KINDS = (1, 3, 7, 15)


@dataclass(frozen=True)
class Span:
    lane: int
    start: int
    end: int
    state: int


@st.composite
def spans_in_lanes(draw: st.DrawFn) -> tuple[int, list[Span]]:
    """Spans that do not overlap within their lane, instants among them, some lanes empty."""
    num_lanes = draw(st.integers(1, 4))
    scale = draw(st.sampled_from([1, 7, 10**9, 2**40]))
    spans = []
    for lane in range(num_lanes):
        steps = draw(
            st.lists(
                st.tuples(st.integers(0, 9), st.integers(0, 12), st.sampled_from(KINDS)),
                max_size=25,
            )
        )
        end = draw(st.integers(-40, 40)) * scale
        for gap, length, state in steps:
            start, end = end + gap * scale, end + (gap + length) * scale
            spans.append(Span(lane, start, end, state))
    return num_lanes, spans


@st.composite
def windows(draw: st.DrawFn) -> tuple[int, int, int]:
    """Windows and their width in pixels, none below 1 ns a pixel."""
    scale = draw(st.sampled_from([1, 7, 10**9, 2**40]))
    t0 = draw(st.integers(-60, 200)) * scale + draw(st.integers(-3, 3))
    width = draw(st.integers(1, 50))
    return t0, t0 + width + draw(st.integers(0, 300)) * scale, width


def index_of(num_lanes: int, spans: list[Span]) -> SpanIndex:
    rows = [
        {"lane": s.lane, "start": s.start, "end": s.end, "state": s.state, "table": 0, "ref": row}
        for row, s in enumerate(spans)
    ]
    return SpanIndex(of_frame(pl.DataFrame(rows, schema=SPAN_COLUMNS), num_lanes))


def busy_by_state(spans: list[Span], t0: int, t1: int) -> dict[int, int]:
    busy = dict.fromkeys(KINDS, 0)
    for span in spans:
        busy[span.state] += max(0, min(span.end, t1) - max(span.start, t0))
    return busy


def touching(spans: list[Span], t0: int, t1: int) -> list[Span]:
    return [s for s in spans if (s.start < t1 and s.end > t0) or t0 <= s.start == s.end < t1]


def expected_pixel(spans: list[Span], t0: int, t1: int) -> tuple[int, int, int]:
    seen = touching(spans, t0, t1)
    busy = busy_by_state(spans, t0, t1)
    if not seen:
        return 0, 0, 0
    if not any(busy.values()):
        return seen[-1].state, 1, len(seen)
    dominant = max(busy, key=lambda state: (busy[state], -state))
    density = math.ceil(sum(busy.values()) * (255.0 / (t1 - t0)))
    return dominant, min(density, 255), len(seen)


@pytest.fixture(params=["in one pass", "by NumPy"], autouse=True, scope="module")
def in_either_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """All of it once in C, where that is compiled, and once with arrays."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "by NumPy":
            patch.setattr(compiled, "IS_COMPILED", False)
        elif not compiled.IS_COMPILED:
            pytest.skip("nothing was compiled here")
        yield


@given(spans_in_lanes(), windows())
def test_each_pixel_shows_the_dominant_state_how_busy_and_how_many(
    given_spans: tuple[int, list[Span]], window: tuple[int, int, int]
) -> None:
    num_lanes, spans = given_spans
    edges = pixel_edges(*window)

    pixels = index_of(num_lanes, spans).pixels(np.arange(num_lanes), edges)

    for lane in range(num_lanes):
        own = [span for span in spans if span.lane == lane]
        for x in range(window[2]):
            shown = (pixels.state[lane, x], pixels.density[lane, x], pixels.count[lane, x])
            assert shown == expected_pixel(own, int(edges[x]), int(edges[x + 1]))


@given(spans_in_lanes(), windows(), st.sets(st.sampled_from(KINDS)))
def test_a_pixel_is_marked_wherever_it_has_any_of_a_state_that_is_a_mark(
    given_spans: tuple[int, list[Span]], window: tuple[int, int, int], hidden: set[int]
) -> None:
    num_lanes, spans = given_spans
    edges, shown = pixel_edges(*window), {3, 15} - hidden

    marks = index_of(num_lanes, spans).marks(np.arange(num_lanes), edges, (3, 15), hidden)

    for lane in range(num_lanes):
        own = [span for span in spans if span.lane == lane]
        for x in range(window[2]):
            ends = int(edges[x]), int(edges[x + 1])
            busy = {kind: ns for kind, ns in busy_by_state(own, *ends).items() if kind in shown}
            if any(busy.values()):
                expected = max(busy, key=lambda state: (busy[state], -state))
            else:
                last = [span.state for span in touching(own, *ends)][-1:]
                expected = next((state for state in last if state in shown), 0)
            assert marks[lane, x] == expected


@given(spans_in_lanes(), windows())
def test_busy_time_of_each_state_is_conserved(
    given_spans: tuple[int, list[Span]], window: tuple[int, int, int]
) -> None:
    num_lanes, spans = given_spans

    busy = index_of(num_lanes, spans).busy(np.arange(num_lanes), pixel_edges(*window))

    total = {state: int(per_pixel.sum()) for state, per_pixel in busy.items()}
    expected = busy_by_state(spans, window[0], window[1])
    assert total == {state: expected[state] for state in total}
    assert not any(expected[state] for state in expected.keys() - total.keys())


@slow
@given(spans_in_lanes(), windows())
def test_the_visible_spans_are_those_that_touch_the_window(
    given_spans: tuple[int, list[Span]], window: tuple[int, int, int]
) -> None:
    num_lanes, spans = given_spans
    index = index_of(num_lanes, spans)

    for lane in range(num_lanes):
        first, last = index.visible(lane, window[0], window[1])

        own = [span for span in spans if span.lane == lane]
        assert [spans[row] for row in range(first, last)] == touching(own, window[0], window[1])


@slow
@given(spans_in_lanes(), windows(), st.sampled_from(KINDS))
def test_a_hidden_state_leaves_the_pixel_to_the_others(
    given_spans: tuple[int, list[Span]], window: tuple[int, int, int], hidden: int
) -> None:
    num_lanes, spans = given_spans
    lanes, edges = np.arange(num_lanes), pixel_edges(*window)
    others = [span for span in spans if span.state != hidden]

    pixels = index_of(num_lanes, spans).pixels(lanes, edges, {hidden})

    without = index_of(num_lanes, others).pixels(lanes, edges)
    takes_time = without.density > 1
    assert (pixels.state != hidden).all()
    assert (pixels.state == without.state)[takes_time].all()
    assert (pixels.density == without.density)[takes_time].all()


@given(windows())
def test_pixel_edges_cover_the_window_without_an_empty_pixel(window: tuple[int, int, int]) -> None:
    t0, t1, width = window

    edges = pixel_edges(t0, t1, width)

    sizes = np.diff(edges)
    assert (edges[0], edges[-1], len(edges)) == (t0, t1, width + 1)
    assert sizes.min() >= 1
    assert sizes.max() - sizes.min() <= 1


def test_a_busy_lane_among_quiet_ones_is_searched_to_the_right_span() -> None:
    crowded = [Span(0, t, t + 1, 1 + 2 * (t % 2)) for t in range(100_000, 101_000)]
    lonely = [Span(lane, 0, 10**9, 7) for lane in range(1, 50)]

    pixels = index_of(50, crowded + lonely).pixels(np.array([0, 49]), np.arange(100_500, 100_511))

    assert pixels.state[0].tolist() == [1, 3] * 5
    assert pixels.state[1].tolist() == [7] * 10


overlapping = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 10)), max_size=40
)


@given(overlapping)
def test_sublanes_hold_every_span_once_and_none_that_overlap(
    given_spans: list[tuple[int, int, int]],
) -> None:
    rows = [
        {"lane": lane, "start": t, "end": t + dur, "state": 1, "table": 0, "ref": row}
        for row, (lane, t, dur) in enumerate(given_spans)
    ]

    spans, num_sublanes = in_sublanes(pl.DataFrame(rows, schema=SPAN_COLUMNS), 3)

    first = np.concatenate(([0], np.cumsum(num_sublanes)))
    assert sorted(spans["ref"]) == list(range(len(rows)))
    for _, own in spans.group_by("lane", maintain_order=True):
        assert (own["start"].to_numpy()[1:] >= own["end"].to_numpy()[:-1]).all()
    for sublane, row in spans.select("lane", "ref").iter_rows():
        assert first[given_spans[row][0]] <= sublane < first[given_spans[row][0] + 1]


def test_what_is_nested_lies_one_sublane_below_what_encloses_it() -> None:
    start, end = np.array([0, 0, 2, 5, 12]), np.array([10, 4, 3, 9, 15])

    depth = depths(np.zeros(5, np.int64), start, end)

    assert depth.tolist() == [0, 1, 2, 1, 0]


def test_spans_that_run_across_each_other_get_lanes_of_their_own() -> None:
    start, end = np.array([0, 5, 8]), np.array([6, 12, 20])

    depth = depths(np.zeros(3, np.int64), start, end)

    assert depth.tolist() == [0, 1, 0]


def test_totals_that_wrap_around_still_give_each_pixels_busy_time() -> None:
    full = 2**32 - 10
    spans = [Span(lane, 0, full, 1) for lane in range(3)] + [Span(3, 0, 100, 3)]

    busy = index_of(4, spans).busy(np.arange(4), np.array([0, 100, full]))

    assert busy[1].tolist() == [300, 3 * (full - 100)]
    assert busy[3].tolist() == [100, 0]


def test_a_pixel_of_more_than_four_seconds_shows_all_of_its_busy_time() -> None:
    spans = [Span(0, 0, 2**33 + 5, 1), Span(0, 2**33 + 5, 2**33 + 9, 3)]

    busy = index_of(1, spans).busy(np.array([0]), np.array([0, 2**34]))

    assert {state: int(amount[0]) for state, amount in busy.items()} == {1: 2**33 + 5, 3: 4}


@slow
def test_a_sum_over_a_great_many_lanes_holds_few_of_them_at_once() -> None:
    num_lanes, num_pixels = 6_000, 1_000
    index = index_of(
        num_lanes, [Span(lane, lane, lane + 5, KINDS[lane % 2]) for lane in range(num_lanes)]
    )
    edges = np.linspace(0, num_lanes + 5, num_pixels + 1).astype(np.int64)

    tracemalloc.start()
    busy = index.busy(np.arange(num_lanes), edges)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 8 * num_lanes * num_pixels
    assert {kind: int(ns.sum()) for kind, ns in busy.items()} == {
        KINDS[0]: 5 * num_lanes // 2, KINDS[1]: 5 * num_lanes // 2,
    }  # fmt: skip


@given(spans_in_lanes(), st.integers(-60, 200), st.sampled_from([1, 7, 10**9, 2**40]))
def test_spans_that_began_and_that_ended_by_a_time_are_counted(
    given_spans: tuple[int, list[Span]], at: int, scale: int
) -> None:
    num_lanes, spans = given_spans
    index, lanes, ts_ns = index_of(num_lanes, spans), np.arange(num_lanes), at * scale

    began = index.began_by(lanes, np.full(num_lanes, ts_ns))
    ended = index.ended_by(lanes, ts_ns)

    for lane in range(num_lanes):
        before = sum(span.lane < lane for span in spans)
        own = [span for span in spans if span.lane == lane]
        assert began[lane] == before + sum(span.start <= ts_ns for span in own)
        assert ended[lane] == before + sum(span.end <= ts_ns for span in own)


@slow
@given(spans_in_lanes(), st.data())
def test_spans_in_other_states_are_those_that_were_laid_out_so(
    given_spans: tuple[int, list[Span]], data: st.DataObject
) -> None:
    num_lanes, spans = given_spans
    states = data.draw(st.lists(st.sampled_from(KINDS), min_size=len(spans), max_size=len(spans)))
    others = [Span(s.lane, s.start, s.end, state) for s, state in zip(spans, states, strict=True)]
    lanes, edges = np.arange(num_lanes), pixel_edges(*data.draw(windows()))

    seen = index_of(num_lanes, spans).recoloured(np.array(states, np.uint8)).pixels(lanes, edges)

    made = index_of(num_lanes, others).pixels(lanes, edges)
    assert (seen.state == made.state).all()
    assert (seen.density == made.density).all()
    assert (seen.count == made.count).all()
