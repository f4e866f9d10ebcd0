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

import numpy as np

from stepscope.app.palette import NOT_BUSY
from stepscope.app.timeline.flows.span_numbers import SpanNumbers, Spot
from stepscope.app.timeline.flows.ties import Ties
from stepscope.app.timeline.lanes.lane import Ints

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
        found: list[PathPart] = []
        spot, led, until = self.numbers.spot(number), LANE, None
        for _ in range(most):
            start, end = spot.times
            end = end if until is None else until
            found.append(PathPart(start, end, spot.lane, number, is_gap=False, led=led))
            before = self._before(number, spot, start)
            if before is None:
                return Path(tuple(reversed(found)), is_cut=False)
            until, number, led = before
            found += reversed([*self._gap(spot, until, start)])
            spot = self.numbers.spot(number)
        while found[-1].is_gap:
            found.pop()
        return Path(tuple(reversed(found)), is_cut=True)

    def _before(self, number: int, spot: Spot, start: int) -> tuple[int, int, int] | None:
        """Until when, which, and how: the span that the path comes from."""
        best: tuple[tuple[int, int, int], tuple[int, int, int]] | None = None
        for source, kind in self.ties.preceding(number):
            at = self.numbers.spot(source)
            began, ended = at.times
            if began < start:
                until = min(ended, start)
                rank = (until, 1, -began)
                if best is None or rank > best[0]:
                    best = rank, (until, source, kind)
        for source, began, until in self._on_lane(spot, start):
            rank = (until, 0, -began)
            if best is None or rank > best[0]:
                best = rank, (until, source, LANE)
        return best[1] if best else None

    def _on_lane(self, spot: Spot, start: int) -> Iterator[tuple[int, int, int]]:
        """Of each sub-lane the last that was busy and had ended when something began."""
        index, base = spot.index, self._base(spot)
        lanes = self._sublanes(spot)
        firsts = index.offsets.take(lanes).tolist()
        for first, ended in zip(firsts, index.ended_by(lanes, start).tolist(), strict=True):
            place = ended - 1
            while place >= first and (
                index.state[place] in NOT_BUSY or index.starts[place] >= start
            ):
                place -= 1
            if place >= first:
                yield base + place, *Spot(index, place, spot.lane).times

    def _gap(self, spot: Spot, since: int, until: int) -> Iterator[PathPart]:
        """What the lane that waited was in between two times, part by part."""
        if since >= until:
            return
        lying = self._lying_over(spot, since, until)
        if len(lying) > MOST_IN_GAP:
            lying = []
        cuts = sorted({since, until, *(max(start, since) for start, _, _ in lying)}
                      | {min(end, until) for _, end, _ in lying})  # fmt: skip
        for start, end in pairwise(cuts):
            over = [each for each in lying if each[0] <= start and each[1] >= end]
            inner = max(over, default=None)
            yield PathPart(start, end, spot.lane, inner[2] if inner else None, is_gap=True)

    def _lying_over(self, spot: Spot, since: int, until: int) -> list[tuple[int, int, int]]:
        index, base = spot.index, self._base(spot)
        lanes = self._sublanes(spot)
        lows = index.ended_by(lanes, since).tolist()
        highs = index.began_by(lanes, np.full(len(lanes), until - 1)).tolist()
        return [
            (*Spot(index, place, spot.lane).times, base + place)
            for low, high in zip(lows, highs, strict=True)
            for place in range(low, min(high, low + MOST_IN_GAP + 1))
        ]

    def _base(self, spot: Spot) -> int:
        sections = self.numbers.sections
        at = next(at for at, each in enumerate(sections) if each.index is spot.index)
        return int(self.numbers.first[at])

    def _sublanes(self, spot: Spot) -> Ints:
        """The sub-lanes that go with a lane, as the index of its section counts them."""
        section = next(each for each in self.numbers.sections if each.index is spot.index)
        return np.asarray(self.families[spot.lane], np.int64) - section.first_lane


def families(depths: Collection[int]) -> tuple[range, ...]:
    """Of each lane those that are one with it, given the depth of each: from a 0 to the next."""
    if not depths:
        return ()
    found: list[range] = []
    begins = [at for at, depth in enumerate(depths) if not depth]
    for first, after in zip(begins, [*begins[1:], len(depths)], strict=True):
        found += [range(first, after)] * (after - first)
    return tuple(found)
