"""Arrows of two traces: each within its own, at the time of A."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stepscope.app.timeline.flows.flow import Flows, Tied
from stepscope.app.timeline.flows.path import Path
from stepscope.app.timeline.picture import SpanView


@dataclass(frozen=True, slots=True)
class Ends:
    """How a span is found in its own trace, and one of that trace here."""

    own: Callable[[SpanView], tuple[int, SpanView]]
    here: Callable[[int, SpanView], SpanView]


class JoinedFlows(Flows):
    """Asks the trace that a span is of; a path is told in words, and not drawn over both."""

    def __init__(self, both: Sequence[Flows], ends: Ends) -> None:
        self._both, self._ends = both, ends

    def preceding(self, span: SpanView, most: int = 200) -> list[Tied]:
        """What leads to a span."""
        side, own = self._ends.own(span)
        return self._here(side, self._both[side].preceding(own, most))

    def following(self, span: SpanView, most: int = 200) -> list[Tied]:
        """What a span leads to."""
        side, own = self._ends.own(span)
        return self._here(side, self._both[side].following(own, most))

    def path_to(self, span: SpanView) -> Path | None:
        """No path is drawn."""
        del span
        return None

    def _here(self, side: int, tied: list[Tied]) -> list[Tied]:
        return [Tied(each.kind, self._ends.here(side, each.span)) for each in tied]
