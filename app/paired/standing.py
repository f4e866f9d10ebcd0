"""Where one stands before two traces: how they lie on each other, and what keys change of it."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.app.live.carried_over import lane_keys
from stepscope.app.paired.alignments import Alignment
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.paired.pair import Pair
from stepscope.app.timeline import Viewport
from stepscope.app.timeline.navigator import Navigator

ALONE = "is shown of one trace at a time: open that one alone"
"""What is said of a key that is about one trace: to follow, to reload, to step, to ask what if."""


@dataclass(slots=True)
class Standing:
    """A pair, how it is aligned, and what is looked at of it."""

    pair: Pair
    alignment: Alignment
    view: Navigator

    @classmethod
    def first(cls, pair: Pair, alignment: Alignment | None = None) -> Standing:
        """The whole of both, as they are aligned at first."""
        by = alignment or pair.first_alignment
        return cls(pair, by, navigator(pair, by))

    @property
    def timeline(self) -> JoinedTimeline:
        """The lanes of both."""
        return self.pair.timeline(self.alignment)

    @property
    def said(self) -> str:
        """How they lie on each other, and where they diverge, in a line."""
        return f"aligned by {self.alignment.said} · {self.pair.said}"

    def diverged(self) -> bool:
        """Go to the first step that differs; False where none does."""
        there = self.pair.diverged_on_a(self.alignment)
        if there is None:
            return False
        self.view.frame(min(there), max(there))
        self.view.move_to(there[0])
        return True

    def next_alignment(self) -> str:
        """Lay B on A by what comes next that is possible; gives why one was passed over, if so."""
        order = ("time", "step", "request")
        after = order.index(self.alignment.by) + 1
        why = ""
        for by in (*order[after:], *order[:after]):
            who = self.pair.who(self.timeline, self.view.lane) if by == "request" else None
            found = self.pair.aligned(by, who)  # type: ignore[arg-type]  # of the three
            if isinstance(found, Alignment):
                self.lie(found)
                return why
            why = found
        return why

    def by_request(self, rank: int, request: str) -> str:
        """Lay B on A by a request's arrival, and go there; gives why that cannot be."""
        found = self.pair.aligned("request", (rank, request))
        if not isinstance(found, Alignment):
            return found
        self.lie(found)
        lane = self.timeline.lane_of_request(rank, request)
        at_ns = int(found.map.a[0])
        if lane is not None:
            self.view.expand_to(lane)
            self.view.select(lane, at_ns)
        self.view.bring_into_view(at_ns)
        return ""

    def lie(self, alignment: Alignment) -> None:
        """Lay B on A otherwise, and look where one looked on the time of A."""
        before = self.view
        self.alignment = alignment
        self.view = navigator(self.pair, alignment, before)

    def exchange(self) -> None:
        """Have B be A, and look at the same of it."""
        before, old = self.view, self.timeline
        ends = (old.own_time(1, before.viewport.t0), old.own_time(1, before.viewport.t1))
        who = self.alignment.who
        asked = None if who is None else (who[0], self.pair.called_in_b(who[1]))
        self.pair = self.pair.swapped()
        self.alignment = self.pair.alignment(self.alignment.by, asked)
        cursor_ns = old.own_time(1, before.cursor_ns)
        self.view = navigator(self.pair, self.alignment)
        self.view.look_at(Viewport(ends[0], max(ends[1], ends[0] + 1)))
        first, last = self.view.timeline.bounds
        self.view.cursor_ns = min(max(cursor_ns, first), last - 1)


def navigator(pair: Pair, alignment: Alignment, before: Navigator | None = None) -> Navigator:
    """What is looked at under an alignment: the whole, or what was looked at before."""
    timeline = pair.timeline(alignment)
    view = Navigator(
        timeline, pair.findings(alignment), composition=pair.sides[0].composition,
        collapsed=set(timeline.collapsed_at_first),
    )  # fmt: skip
    if not view.findings:
        view.without_findings = " ".join(
            f"{letter}: {each.coverage.without_findings}"
            for letter, each in zip("AB", pair.results, strict=True)
        )
    if before is not None:
        assert lane_keys(before.timeline.lanes) == lane_keys(timeline.lanes)
        view.collapsed, view.pins, view.hidden = before.collapsed, before.pins, before.hidden
        view.look_at(before.viewport)
        view.lane = before.lane
        first, last = timeline.bounds
        view.cursor_ns = min(max(before.cursor_ns, first), last - 1)
        view.is_placed = before.is_placed
    return view
