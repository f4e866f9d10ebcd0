"""One number for each span of a timeline, so that what is said of many is said in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from stepscope.app.palette import ABSENT, HELD
from stepscope.app.timeline.lanes.lane import TABLES, Ints
from stepscope.app.timeline.listed.by_lane import OF_REQUESTS
from stepscope.app.timeline.span_index import Section, SpanIndex

NONE = -1


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a span is: its section's index, its place there, and its lane on the timeline."""

    index: SpanIndex
    place: int
    lane: int

    @property
    def times(self) -> tuple[int, int]:
        """When the span begins and ends."""
        start = self.index.starts[self.place]
        return start, start + self.index.lengths[self.place]


class SpanNumbers:
    """Numbers spans section after section, in each by lane and start."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self.sections = tuple(sections)
        sizes = [len(each.index) for each in self.sections]
        self.first: Ints = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
        self._of_rows: dict[str, Ints] = {}

    def of_rows(self, table: str, rows: npt.ArrayLike) -> Ints:
        """The first span that stands for each row of a table, NONE where none does.

        The time for which a core was held before a block is no span of that block. Slots and the
        waiting queue show rows again that the lanes of requests have.
        """
        if table not in self._of_rows:
            self._of_rows[table] = self._inverted(TABLES.index(table))
        known = self._of_rows[table]
        wanted = np.asarray(rows, np.int64)
        if not len(known):
            return np.full(wanted.shape, NONE, np.int64)
        found = known.take(wanted, mode="clip").astype(np.int64)
        return np.where(wanted < len(known), found, NONE)

    def _inverted(self, code: int) -> Ints:
        own = []
        for section, first in zip(self.sections, self.first.tolist(), strict=False):
            if section.name in OF_REQUESTS:
                continue
            places = np.flatnonzero(
                (section.index.table == code) & ~np.isin(section.index.state, (HELD, ABSENT))
            )
            own.append((section.index.ref[:][places], places + first))
        last = max((int(ref.max()) for ref, _ in own if len(ref)), default=-1)
        found = np.full(last + 1, NONE, np.int64)
        for ref, number in reversed(own):
            found[ref[::-1]] = number[::-1]
        return found

    def spot(self, number: int) -> Spot:
        """Where a span of this number is."""
        at = int(np.searchsorted(self.first, number, "right")) - 1
        section, place = self.sections[at], number - int(self.first[at])
        own = int(np.searchsorted(section.index.offsets, place, "right")) - 1
        return Spot(section.index, place, section.first_lane + own)

    def times(self, numbers: Ints) -> tuple[Ints, Ints]:
        """When spans begin and end."""
        start, end = np.zeros((2, len(numbers)), np.int64)
        for section, first in zip(self.sections, self.first.tolist(), strict=False):
            place = numbers - first
            own = (place >= 0) & (place < len(section.index))
            start[own] = section.index.starts[place[own]]
            end[own] = section.index.ends(place[own])
        return start, end
