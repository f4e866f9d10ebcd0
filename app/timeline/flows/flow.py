"""What precedes and follows a span, and the path to it, as spans that a front can show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from stepscope.app.timeline.flows.path import Path, PathFinder
from stepscope.app.timeline.flows.span_numbers import SpanNumbers, Spot
from stepscope.app.timeline.flows.ties import Ties
from stepscope.app.timeline.picture import SpanView


@dataclass(frozen=True, slots=True)
class Tied:
    """The other end of an arrow, and what the arrow stands for (`ties.LAUNCH` and on)."""

    kind: int
    span: SpanView


class Flows:
    """Arrows and paths of a timeline; `views` makes spans of their numbers."""

    def __init__(
        self,
        numbers: SpanNumbers,
        ties: Ties,
        families: Sequence[range],
        views: Callable[[int], SpanView],
    ) -> None:
        self.numbers = numbers
        self.ties = ties
        self._finder = PathFinder(numbers, ties, tuple(families))
        self.view = views
        self.path_of_number = lru_cache(maxsize=8)(self._finder.to)

    def number_of(self, span: SpanView) -> int | None:
        """The number of a span that is shown; None for a sample of a counter."""
        numbers = self.numbers
        for section, first in zip(numbers.sections, numbers.first.tolist(), strict=False):
            own = span.lane - section.first_lane
            if 0 <= own < len(section.index.offsets) - 1:
                index = section.index
                low, high = index.visible(own, span.start_ns, span.start_ns + 1)
                for place in range(low, high):
                    times = Spot(index, place, span.lane).times
                    if times == (span.start_ns, span.end_ns) and index.ref[place] == span.ref[1]:
                        return int(first) + place
        return None

    def preceding(self, span: SpanView, most: int = 200) -> list[Tied]:
        """What leads to a span, what ended last first."""
        number = self.number_of(span)
        found = [] if number is None else self.ties.preceding(number)
        return [Tied(kind, self.view(source)) for source, kind in found[:most]]

    def following(self, span: SpanView, most: int = 200) -> list[Tied]:
        """What a span leads to, what begins first first."""
        number = self.number_of(span)
        found = [] if number is None else self.ties.following(number)
        return [Tied(kind, self.view(target)) for target, kind in found[:most]]

    def num_tied(self, span: SpanView) -> tuple[int, int]:
        """How many arrows lead to a span, and from it."""
        number = self.number_of(span)
        if number is None:
            return 0, 0
        return len(self.ties.preceding(number)), len(self.ties.following(number))

    def path_to(self, span: SpanView) -> Path | None:
        """The path that leads to a span; None for a sample of a counter."""
        number = self.number_of(span)
        return None if number is None else self.path_of_number(number)
