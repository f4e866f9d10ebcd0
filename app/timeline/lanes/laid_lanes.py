"""Lanes as they get their numbers, section after section."""

from __future__ import annotations

import numpy as np
import polars as pl

from stepscope.app.timeline.lanes.counters import Counter
from stepscope.app.timeline.lanes.lane import Ints, Lane, LaneName, LaneSpans
from stepscope.app.timeline.span_index import Section, SpanIndex
from stepscope.app.timeline.spans.in_parts import one_ahead
from stepscope.app.timeline.spans.piles import Piles
from stepscope.app.timeline.spans.span_columns import Columns, ColumnsBuilder
from stepscope.app.timeline.spans.sublanes import in_sublanes


class LaidLanes:
    """The lanes so far, what each is called, the sections with their spans, counters by lane."""

    def __init__(self, piles: Piles | None = None) -> None:
        """Keep the columns of spans in `piles`, else in memory."""
        self._piles = piles
        self.lanes: list[Lane] = []
        self.names: list[LaneName] = []
        self.sections: list[Section] = []
        self.counters: dict[int, Counter] = {}

    def add_section(self, section: str, found: LaneSpans) -> None:
        """Lay out the lanes of a section, with a sub-lane for what ran at the same time."""
        if not found.names:
            return
        columns, num_sublanes = _put_together(found, f"{len(self.sections)}.", self._piles)
        first_lane = len(self.lanes)
        kind = "steps" if section == "steps" else "spans"
        self._add(section, kind, found.names, num_sublanes)
        self.sections.append(Section(section, first_lane, SpanIndex(columns)))

    def add_counters(self, found: tuple[Counter, ...]) -> None:
        """Lay out a lane for each counter."""
        first_lane = len(self.lanes)
        for counter in found:
            self._add(counter.section, "counter", (counter.name,), np.ones(1, np.int64))
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


def _put_together(found: LaneSpans, name: str, piles: Piles | None) -> tuple[Columns, Ints]:
    """The columns of a section's spans, and how many sub-lanes each of its lanes has become."""
    built = ColumnsBuilder(name, piles)
    num_sublanes, done = np.ones(len(found.names), np.int64), 0
    for part in one_ahead(found.parts):
        if len(part):
            last = int(part["lane"].max()) + 1  # type: ignore[arg-type]  # of unsigned numbers
            own = part.with_columns(pl.col("lane") - done)
            spans, num_sublanes[done:last] = in_sublanes(own, last - done)
            size = int(num_sublanes[done:last].sum())
            ends = np.searchsorted(spans["lane"].to_numpy(), np.arange(size + 1, dtype=np.uint32))
            built.add(spans, np.diff(ends))
            done = last
    return built.whole(int(num_sublanes.sum())), num_sublanes
