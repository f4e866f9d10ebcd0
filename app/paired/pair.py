"""Two traces, A and B, and how they lie on each other: what both fronts show of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import polars as pl

from stepscope.analyzers.check.run import check
from stepscope.analyzers.diff.compare import Difference, diff
from stepscope.analyzers.latency.blame import Blame, blame
from stepscope.analyzers.summary.slo import Slo
from stepscope.app.kept.flags import Flags
from stepscope.app.paired.alignments import (
    Alignment,
    By,
    Side,
    Who,
    by_request,
    by_step,
    by_time,
    has_steps_in_common,
)
from stepscope.app.paired.flags_of_both import FlagsOfBoth
from stepscope.app.paired.found_in_both import PairedFinding, Results, found_in
from stepscope.app.paired.joined_timeline import JoinedTimeline
from stepscope.app.paired.lane_pairs import joined
from stepscope.app.paired.summary_deltas import summary_deltas
from stepscope.app.present.blocks import Block
from stepscope.app.present.diff_text import verdict
from stepscope.app.timeline import Composition, Timeline
from stepscope.app.timeline.flags.flag_at import FlagsOnLanes
from stepscope.ingest.derive.states import step_times
from stepscope.ingest.trace import Trace

Report = Callable[[str], None]
MOST_KEPT = 8
"""Alignments whose lanes are kept, so that going back to one takes no time."""


@dataclass(frozen=True)
class Pair:
    """A and B as they were read, what the rules say of each, and how they differ.

    Latencies are held against the `slo`.
    """

    sides: tuple[Side, Side]
    results: Results
    difference: Difference
    slo: Slo | None = None
    _swapped: list[Pair] = field(default_factory=list, init=False, repr=False)

    @property
    def traces(self) -> tuple[Trace, Trace]:
        """A and B."""
        return self.sides[0].trace, self.sides[1].trace

    def swapped(self) -> Pair:
        """The same with B as A; twice is this one again."""
        if not self._swapped:
            a, b = self.sides
            other = Pair((b, a), self.results[::-1], diff(b.trace, a.trace), self.slo)
            other._swapped.append(self)
            self._swapped.append(other)
        return self._swapped[0]

    # ── alignment ────────────────────────────────────────────────────────────────────────────

    @cached_property
    def at_first(self) -> By:
        """By step where both have steps of the same numbers, else by time."""
        return "step" if has_steps_in_common(*self.sides) else "time"

    @cached_property
    def first_alignment(self) -> Alignment:
        """The alignment that both fronts begin with."""
        return self.alignment(self.at_first)

    def alignment(self, by: By, who: Who | None = None) -> Alignment:
        """How B lies on A; by time where it cannot lie so."""
        found = self.aligned(by, who)
        return by_time(*self.sides) if isinstance(found, str) else found

    def aligned(self, by: By, who: Who | None = None) -> Alignment | str:
        """How B lies on A, or in a line why it cannot lie on it so."""
        a, b = self.sides
        if by == "time":
            return by_time(a, b)
        if by == "step":
            return by_step(a, b) or "no steps of the two have numbers in common: aligned by time"
        if who is None:
            return "select a lane of a request first, which both have"
        return by_request(a, b, who, self.called_in_b(who[1])) or (
            f"only one of the two tells of request {who[1]}"
        )

    def called_in_b(self, request: str) -> str:
        """What B calls a request of A."""
        return self._names_in_b.get(request, request)

    @cached_property
    def _names_in_b(self) -> dict[str, str]:
        return {ours: theirs for theirs, ours in self.difference.pairing.names.items()}

    def who(self, timeline: Timeline, lane: int | None) -> Who | None:
        """The request of a lane, as A calls it."""
        found = None if lane is None else timeline.request_of(lane)
        if found is None or not isinstance(timeline, JoinedTimeline) or lane is None:
            return found
        is_b = timeline.joined.whose[lane][0]
        names = self.difference.pairing.names
        return (found[0], names.get(found[1], found[1])) if is_b else found

    @cached_property
    def _joined(self) -> Callable[[Alignment], JoinedTimeline]:
        both = self.sides[0].timeline, self.sides[1].timeline
        lanes = joined(*both, self.difference.pairing.names)
        made: dict[str, JoinedTimeline] = {}

        def lie(alignment: Alignment) -> JoinedTimeline:
            if alignment.spelled not in made:
                if len(made) >= MOST_KEPT:
                    made.pop(next(iter(made)))
                made[alignment.spelled] = JoinedTimeline(both, lanes, alignment)
            return made[alignment.spelled]

        return lie

    def timeline(self, alignment: Alignment) -> JoinedTimeline:
        """The lanes of both under an alignment."""
        return self._joined(alignment)

    def findings(self, alignment: Alignment) -> tuple[PairedFinding, ...]:
        """What was found in both, on the time of A."""
        return found_in(self.results, self.difference.pairing.names, alignment.map)

    # ── what differs ─────────────────────────────────────────────────────────────────────────

    @cached_property
    def said(self) -> str:
        """Where they diverge, in the words of `diff`."""
        return next(verdict(self.difference))

    @cached_property
    def diverged_ns(self) -> tuple[int, int] | None:
        """When the first step that differs was formed in A, and in B, each by its own clock."""
        found = self.difference.divergence
        if found is None:
            return None
        times = [
            step_times(trace)
            .filter((pl.col("rank") == found.rank) & (pl.col("step") == found.step))
            .select(pl.coalesce("formed_ns", "from_ns").min())
            .collect()
            .item()
            for trace in self.traces
        ]
        return None if None in times else (int(times[0]), int(times[1]))

    def diverged_on_a(self, alignment: Alignment) -> tuple[int, int] | None:
        """The same on the time of A."""
        own = self.diverged_ns
        return None if own is None else (own[0], alignment.map.a_at(own[1]))

    @cached_property
    def blamed(self) -> tuple[Blame, Blame]:
        """What each request's latency went to, requests called as in A."""
        return blame(self.traces[0]), blame(self.difference.pairing.b)

    @cached_property
    def _flags(self) -> tuple[FlagsOnLanes, FlagsOnLanes]:
        a, b = (FlagsOnLanes(Flags(each.trace.path), each.timeline.lanes) for each in self.sides)
        return a, b

    def flags(self, alignment: Alignment) -> FlagsOfBoth:
        """What was put on either, on the time of A."""
        return FlagsOfBoth(self._flags, self.timeline(alignment))

    @cached_property
    def summed(self) -> tuple[Block, ...]:
        """What the summaries of both come to, held against each other. Reads rows."""
        traces = self.traces[0], self.difference.pairing.b
        return tuple(summary_deltas(traces, self.blamed, self.slo))


def pair_of(
    traces: tuple[Trace, Trace], report: Report = lambda _: None, slo: Slo | None = None
) -> Pair:
    """Lay out two traces, check both, and compare them."""
    sides, results = [], []
    for letter, trace in zip("AB", traces, strict=True):
        report(f"laying out {letter}")
        timeline = Timeline.of(trace).coloured("state")
        sides.append(Side(trace, timeline, Composition.of(trace, timeline.walked_rank)))
    for letter, trace in zip("AB", traces, strict=True):
        results.append(check(trace, progress=lambda rule, *_: report(f"{letter}: {rule}")))  # noqa: B023 - called before the next
    report("comparing")
    return Pair((sides[0], sides[1]), (results[0], results[1]), diff(*traces), slo)
