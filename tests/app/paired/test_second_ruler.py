"""Under the times of A stand those of B, by its own clock, where they lie on the time of A."""

from __future__ import annotations

from random import Random

import pytest

from stepscope.app.paired.alignments import Alignment
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.web import wire
from stepscope.app.web.side_by_side.pair_source import PairSource
from tests.app.paired.pairs import EVERY_PAIR, pair
from tests.app.web.small_traces import conflict_trace, loaded_of


def timelines(name: str) -> list[JoinedTimeline]:
    found = (pair(name).aligned(by) for by in ("time", "step"))
    return [pair(name).timeline(each) for each in found if isinstance(each, Alignment)]


@pytest.mark.parametrize("name", EVERY_PAIR)
def test_its_times_are_round_and_each_lies_where_b_is_then(name: str) -> None:
    random = Random(3)
    for timeline in timelines(name):
        begin, (first, last) = timeline.both[1].bounds[0], timeline.bounds
        for _ in range(20):
            t0 = random.randrange(first, last)
            t1 = random.randrange(t0 + 1, last + 2)
            most = random.randint(1, 30)
            ruler = timeline.ruler_of_b(t0, t1, most)

            own0, own1 = timeline.own_window(1, t0, t1)
            inside = [each for each in ruler.own if own0 <= each + begin < own1]
            assert inside == ruler.own == sorted(set(ruler.own))
            assert all(each % ruler.step == 0 for each in ruler.own)
            assert len(ruler.own) <= most + 1
            assert ruler.last == own1 - begin
            assert [timeline.on_a(1, each + begin) for each in ruler.own] == ruler.on_a
            assert ruler.on_a == sorted(ruler.on_a)


def test_the_page_is_sent_them_from_its_origin_and_of_one_trace_none() -> None:
    loaded = PairSource(pair("fcfs")).now
    asked = {"t0": 0, "t1": loaded.length, "width": 1100, "lanes": [0], "hide": []}
    timeline = pair("fcfs").timeline(pair("fcfs").first_alignment)

    told = wire.picture(loaded, asked)["beside"]

    ruler = timeline.ruler_of_b(loaded.origin, loaded.origin + loaded.length, 10)
    assert len(told["own"]) > 3
    assert (told["step"], told["last"], told["own"]) == ruler[:3]
    assert [each + loaded.origin for each in told["at"]] == ruler.on_a
    assert wire.model(loaded)["is_two"]
    alone = loaded_of(conflict_trace())
    assert wire.picture(alone, asked)["beside"] is None
    assert not wire.model(alone)["is_two"]
