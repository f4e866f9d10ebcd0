"""Lanes as they get their numbers, section after section."""

from __future__ import annotations

import numpy as np

from stepscope.app.timeline.lanes.counters import Counter
from stepscope.app.timeline.lanes.lane import Ints, Lane, LaneName, LaneSpans
from stepscope.app.timeline.span_index import Section, SpanIndex, in_sublanes


class LaidLanes:
    """The lanes so far, what each is called, the sections with their spans, counters by lane."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self.names: list[LaneName] = []
        self.sections: list[Section] = []
        self.counters: dict[int, Counter] = {}

    def add_section(self, section: str, found: LaneSpans) -> None:
        """Lay out the lanes of a section, with a sub-lane for what ran at the same time."""
        if not found.names:
            return
        spans, num_sublanes = in_sublanes(found.spans, len(found.names))
        first_lane = len(self.lanes)
        kind = "steps" if section == "steps" else "spans"
        self._add(section, kind, found.names, num_sublanes)
        index = SpanIndex(spans, int(num_sublanes.sum()))
        self.sections.append(Section(section, first_lane, index))

    def add_counters(self, found: tuple[Counter, ...]) -> None:
        """Lay out a lane for each counter."""
        first_lane = len(self.lanes)
        names = tuple(counter.name for counter in found)
        self._add("counters", "counter", names, np.ones(len(names), np.int64))
        self.counters = {first_lane + place: counter for place, counter in enumerate(found)}

    def _add(
        self, section: str, kind: str, names: tuple[LaneName, ...], num_sublanes: Ints
    ) -> None:
        named = [
            (name, depth)
            for name, count in zip(names, num_sublanes.tolist(), strict=True)
            for depth in range(count)
        ]
        first = len(self.lanes)
        self.lanes += [
            Lane(first + place, section, name.group, name.label, kind, name.rank, depth)
            for place, (name, depth) in enumerate(named)
        ]
        self.names += [name for name, _ in named]
