"""The path to a span: walked back from it, each time to what ended last before it could begin.

What could begin a span is the source of an arrow into it, or what its lane did before: of these
the one that ended last, an arrow before the lane where both end together. What lasted longer than
until the span began counts until then. The time between is a gap of the lane that waited: of what
encloses the span there, of what it was in (held, waiting), or idle. Each part begins where the
one before it ended, so that they add up to the time that the path spans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from stepscope.app.palette import NOT_BUSY
from stepscope.app.timeline.flows.near_spans import NearSpans
from stepscope.app.timeline.flows.span_numbers import SpanNumbers
from stepscope.app.timeline.flows.ties import Ties
from stepscope.app.timeline.span_index import SpanIndex

MOST_HOPS = 1_000
MOST_IN_GAP = 64
"""Spans that a gap is split by; one over which more lie is one part."""
LANE = -1
"""What led to the next part where no arrow did: the lane went on."""


@dataclass(frozen=True, slots=True)
class PathPart:
    """A part of the path: a span, or a gap of its lane.

    `number` is the span, or in a gap what the lane was in, None where it was idle; `led` is the
    kind of arrow that led from it to the next span, LANE where there is none.
    """

    start_ns: int
    end_ns: int
    lane: int
    number: int | None
    is_gap: bool
    led: int = LANE

    @property
    def ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, slots=True)
class Path:
    """The parts of a path in order of time; `is_cut` where it goes back further than that."""

    parts: tuple[PathPart, ...]
    is_cut: bool

    @property
    def spans_ns(self) -> int:
        """From where it begins to the end of the span that it leads to: the sum of all of it."""
        return self.parts[-1].end_ns - self.parts[0].start_ns

    @property
    def gaps_ns(self) -> int:
        """How much of that is gaps."""
        return sum(each.ns for each in self.parts if each.is_gap)


@dataclass(frozen=True, slots=True)
class PathFinder:
    """Walks back along arrows and lanes; `families` tells the sub-lanes that go with a lane."""

    numbers: SpanNumbers
    ties: Ties
    families: tuple[range, ...]

    def to(self, number: int, most: int = MOST_HOPS) -> Path:
        """The path that leads to a span, of at most so many spans."""
        walk = _Walk(self)
        found: list[PathPart] = []
        here, led, until = walk.standing(number), LANE, None
        for _ in range(most):
            start, end = here.times
            end = end if until is None else until
            found.append(PathPart(start, end, here.lane, here.number, is_gap=False, led=led))
            before = walk.before(here, start)
            if before is None:
                return Path(tuple(reversed(found)), is_cut=False)
            until, number, led = before
            found += reversed([*walk.gap(here, until, start)])
            here = walk.standing(number)
        while found[-1].is_gap:
            found.pop()
        return Path(tuple(reversed(found)), is_cut=True)


@dataclass(frozen=True, slots=True)
class _Lanes:
    """A section on the walk: the number of its first span, and of its first lane."""

    index: SpanIndex
    near: NearSpans
    first: int
    first_lane: int


@dataclass(frozen=True, slots=True)
class _Standing:
    """A span on the walk: its number, its lane on the timeline, and when it begins and ends."""

    on: _Lanes
    number: int
    lane: int
    times: tuple[int, int]


class _Walk:
    """One walk, which looks up what is near to where it is."""

    def __init__(self, finder: PathFinder) -> None:
        self._finder = finder
        numbers = finder.numbers
        self._lanes = {
            id(each.index): _Lanes(each.index, NearSpans(each.index), first, each.first_lane)
            for each, first in zip(numbers.sections, numbers.first.tolist(), strict=False)
        }

    def standing(self, number: int) -> _Standing:
        """Where a span of this number is."""
        spot = self._finder.numbers.spot(number)
        on = self._lanes[id(spot.index)]
        return _Standing(on, number, spot.lane, on.near.times(spot.place))

    def before(self, here: _Standing, start: int) -> tuple[int, int, int] | None:
        """Until when, which, and how: the span that the path comes from."""
        best: tuple[tuple[int, int, int], tuple[int, int, int]] | None = None
        for source, kind in self._finder.ties.preceding(here.number):
            began, ended = self.standing(source).times
            if began < start:
                until = min(ended, start)
                rank = (until, 1, -began)
                if best is None or rank > best[0]:
                    best = rank, (until, source, kind)
        for source, began, until in self._on_lane(here, start):
            rank = (until, 0, -began)
            if best is None or rank > best[0]:
                best = rank, (until, source, LANE)
        return best[1] if best else None

    def gap(self, here: _Standing, since: int, until: int) -> Iterator[PathPart]:
        """What the lane that waited was in between two times, part by part."""
        if since >= until:
            return
        lying = self._lying_over(here, since, until)
        if len(lying) > MOST_IN_GAP:
            lying = []
        cuts = sorted({since, until, *(max(start, since) for start, _, _ in lying)}
                      | {min(end, until) for _, end, _ in lying})  # fmt: skip
        for start, end in pairwise(cuts):
            over = [each for each in lying if each[0] <= start and each[1] >= end]
            inner = max(over, default=None)
            yield PathPart(start, end, here.lane, inner[2] if inner else None, is_gap=True)

    def _on_lane(self, here: _Standing, start: int) -> Iterator[tuple[int, int, int]]:
        """Of each sub-lane the last that was busy and had ended when something began."""
        state, near = here.on.index.state, here.on.near
        for lane in self._sublanes(here):
            first, place = near.first_of(lane), near.ended_by(lane, start) - 1
            while place >= first and (state[place] in NOT_BUSY or near.times(place)[0] >= start):
                place -= 1
            if place >= first:
                yield here.on.first + place, *near.times(place)

    def _lying_over(self, here: _Standing, since: int, until: int) -> list[tuple[int, int, int]]:
        near, first = here.on.near, here.on.first
        found = []
        for lane in self._sublanes(here):
            low, high = near.ended_by(lane, since), near.began_by(lane, until - 1)
            places = range(low, min(high, low + MOST_IN_GAP + 1))
            found += [(*near.times(place), first + place) for place in places]
        return found

    def _sublanes(self, here: _Standing) -> Iterator[int]:
        """The sub-lanes that go with a lane, as the index of its section counts them."""
        return (lane - here.on.first_lane for lane in self._finder.families[here.lane])


def families(depths: Collection[int]) -> tuple[range, ...]:
    """Of each lane those that are one with it, given the depth of each: from a 0 to the next."""
    if not depths:
        return ()
    found: list[range] = []
    begins = [at for at, depth in enumerate(depths) if not depth]
    for first, after in zip(begins, [*begins[1:], len(depths)], strict=True):
        found += [range(first, after)] * (after - first)
    return tuple(found)
