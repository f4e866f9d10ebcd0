"""Two timelines on one: each lane says what its own trace says, at the times that lie there."""

from __future__ import annotations

import inspect
from collections import Counter
from random import Random

import polars as pl
import pytest

from stepscope.analyzers.check.run import check
from stepscope.app.paired.alignments import Alignment
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.timeline import Picture, SpanView, Timeline
from stepscope.app.timeline.area.selection import Pick, Selection
from stepscope.app.timeline.flows.outlines import outlines
from stepscope.app.timeline.span_index import shown_edges
from tests.app.paired.pairs import EVERY_PAIR, pair
from tests.tiers import slow

MOST = 40
"""So many spans of a lane are walked along."""


def timelines(name: str) -> list[JoinedTimeline]:
    found = (pair(name).aligned(by) for by in ("time", "step"))
    return [pair(name).timeline(each) for each in found if isinstance(each, Alignment)]


@pytest.mark.parametrize("name", EVERY_PAIR)
def test_every_lane_of_both_is_there_once_and_partners_know_each_other(name: str) -> None:
    for timeline in timelines(name):
        own = [(side, lane.id) for side in (0, 1) for lane in timeline.both[side].lanes]
        assert sorted(timeline.joined.whose) == sorted(own)
        assert [lane.id for lane in timeline.lanes] == list(range(len(own)))
        for lane, partner in timeline.joined.partners.items():
            assert timeline.joined.partners[partner] == lane
            sides = {timeline.joined.whose[one][0] for one in (lane, partner)}
            assert sides == {0, 1}
            labels = [timeline.lanes[one].label[:2] for one in (lane, partner)]
            assert sorted(labels) == ["A ", "B "]
        for each in timeline.lanes:
            head = each.id
            while timeline.lanes[head].depth:
                head -= 1
            assert each.label.startswith("only ") == (head not in timeline.joined.partners)


@slow
@pytest.mark.parametrize("name", EVERY_PAIR)
def test_a_walk_along_a_lane_meets_the_spans_of_its_own_trace_and_ends(name: str) -> None:
    random = Random(7)
    for timeline in timelines(name):
        for lane in random.sample(range(len(timeline.lanes)), min(6, len(timeline.lanes))):
            side, own = timeline.joined.whose[lane]
            ahead = timeline.bounds[0] - 1
            here: list[SpanView] = []
            while (span := timeline.next_span(lane, ahead)) is not None and len(here) < MOST:
                assert span.start_ns > ahead
                mine = timeline.own_span(span)
                assert (mine.lane, mine.label) == (own, span.label)
                assert timeline.on_a(side, mine.start_ns) == span.start_ns
                assert timeline.row(span.ref) == timeline.both[side].row(mine.ref)
                here.append(span)
                ahead = span.start_ns
            back = timeline.bounds[1] + 1
            if here and len(here) < MOST:
                last = timeline.previous_span(lane, back)
                assert last is not None
                assert last.start_ns == here[-1].start_ns


@pytest.mark.parametrize("name", EVERY_PAIR)
def test_a_picture_of_b_is_that_of_its_own_trace_wherever_the_window_lies(name: str) -> None:
    random = Random(11)
    by_time = timelines(name)[0]
    first, last = by_time.bounds
    for _ in range(5):
        t0 = random.randrange(first, last)
        t1 = random.randrange(t0 + 1, last + 2)
        lanes = random.sample(range(len(by_time.lanes)), min(8, len(by_time.lanes)))
        seen = by_time.query(t0, t1, 64, lanes)
        for row, lane in enumerate(lanes):
            side, own = by_time.joined.whose[lane]
            alone = by_time.both[side].query(*by_time.own_window(side, t0, t1), 64, [own])
            assert seen.state[row].tolist() == alone.state[0].tolist()
            assert seen.density[row].tolist() == alone.density[0].tolist()


def test_a_step_of_b_stands_under_that_of_its_number_in_a() -> None:
    timeline = pair("fcfs").timeline(pair("fcfs").first_alignment)
    ours, theirs = (side.composition for side in pair("fcfs").sides)
    assert pair("fcfs").first_alignment.by == "step"

    for step in (1, 40, 88):
        a = int(ours.formed_ns[ours.step == step][0])
        b = int(theirs.formed_ns[theirs.step == step][0])
        assert timeline.own_time(1, a) == b


def test_a_window_of_nothing_wide_in_b_is_drawn_all_the_same() -> None:
    timeline = pair("fcfs").timeline(pair("fcfs").first_alignment)

    seen = timeline.query(timeline.bounds[0], timeline.bounds[0] + 3, 40, [0, 1, 2, 3])

    assert seen.state.shape == (4, 40)


def arguments(timeline: JoinedTimeline) -> dict[str, object]:
    """What the methods of a timeline are called with, by name of their parameters."""
    first, last = timeline.bounds
    lane = next(lane.id for lane in timeline.lanes if lane.kind != "counter")
    span = timeline.next_span(lane, first - 1)
    edges, shown = shown_edges(first, last, 8)
    finding = check(timeline.both[0]._trace).findings
    return {
        "t0": first, "t1": last, "start_ns": first, "end_ns": last, "width": 8, "lane": lane,
        "lanes": [lane], "limit": 4, "ts_ns": first, "edges": edges, "shown": shown, "text": "r",
        "request": "req-00", "rank": 0, "core": 0, "state": 1, "by": "state",
        "section": timeline.lanes[lane].section, "picture": Picture([lane], 8, list),
        "ref": span.ref if span else ("steps", 0), "finding": finding[0] if finding else None,
        "span": span, "group": ("collectives", "ep"),
    }  # fmt: skip


@pytest.mark.parametrize("name", EVERY_PAIR[:2])
def test_everything_that_a_timeline_answers_two_of_them_answer(name: str) -> None:
    timeline = timelines(name)[0]
    known = arguments(timeline)
    called = 0
    for method, of in inspect.getmembers(Timeline):
        if method.startswith("_") or method == "of":
            continue
        if not inspect.isfunction(of):
            getattr(timeline, method)
            continue
        needed = [
            parameter.name
            for parameter in [*inspect.signature(of).parameters.values()][1:]
            if parameter.default is parameter.empty
        ]
        getattr(timeline, method)(*(known[parameter] for parameter in needed))
        called += 1
    assert called > 20


@pytest.mark.parametrize("name", EVERY_PAIR[:2])
def test_an_area_of_both_has_the_spans_of_each_trace_in_its_own_window(name: str) -> None:
    random = Random(5)
    for timeline in timelines(name):
        first, last = timeline.bounds
        for _ in range(4):
            t0 = random.randrange(first, last)
            t1 = random.randrange(t0 + 1, last + 2)
            lanes = random.sample(range(len(timeline.lanes)), min(9, len(timeline.lanes)))
            sums = timeline.area(t0, t1, lanes)
            for side in (0, 1):
                ours = [lane for lane in lanes if timeline.joined.whose[lane][0] == side]
                own = [timeline.joined.whose[lane][1] for lane in ours]
                alone = timeline.both[side].area(*timeline.own_window(side, t0, t1), own)
                here = sums.spans.filter(pl.col("lane").is_in(ours))
                names = sums.names.names.texts
                theirs = alone.names.names.texts
                assert Counter(names[code] for code in here["name"]) == Counter(
                    theirs[code] for code in alone.spans["name"]
                )
                if not side:
                    assert sorted(here["ns"]) == sorted(alone.spans["ns"])


def test_a_row_of_sums_that_is_picked_on_the_page_of_two_traces_is_outlined() -> None:
    timeline = pair("fcfs").timeline(pair("fcfs").first_alignment)
    lanes = tuple(range(len(timeline.lanes)))
    selection = Selection(mark=timeline.bounds, lanes=lanes, pick=Pick("state", "decode"))

    picked = outlines(selection, timeline)

    assert {timeline.joined.whose[outline.lane][0] for outline in picked} == {0, 1}
    assert all(outline.why == "picked" for outline in picked)
