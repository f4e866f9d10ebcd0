"""Spans as a front shows them: made of an index's columns, with their labels, for the few shown."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np

from stepscope.app.palette import MIXED
from stepscope.app.timeline.lanes.buffers import is_buffer
from stepscope.app.timeline.lanes.lane import TABLES, Lane
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.timeline.listed.labels import (
    CONTENTS,
    OF_REQUEST,
    OWNER,
    STEP_OF_BATCH,
    Labels,
)
from stepscope.app.timeline.picture import Spans, SpanView
from stepscope.app.timeline.span_index import Section, SpanIndex
from stepscope.app.timeline.spans.packed import Bytes, Ints
from stepscope.ingest.trace import Trace

Side = Literal["left", "right"]
OF_REQUESTS = (SLOTS, WAITING_QUEUE)
"""Sections of which each span is called by its request."""


class ListedSpans:
    """Lists the spans of lanes; labels are looked up in the trace."""

    def __init__(self, trace: Trace, lanes: Sequence[Lane], sections: Sequence[Section]) -> None:
        self._trace, self._sections = trace, sections
        kinds = {"steps": 1} | dict.fromkeys(OF_REQUESTS, 2)
        self._naming = np.array(
            [3 if is_buffer(lane) else kinds.get(lane.section, 0) for lane in lanes], np.uint8
        )

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self._trace)

    def index_of(self, lane: int) -> tuple[SpanIndex, int] | None:
        """The index that a lane is in, and its number there; None for a counter."""
        for section in self._sections:
            own = lane - section.first_lane
            if 0 <= own < len(section.index.offsets) - 1:
                return section.index, own
        return None

    def first(self, lane: int, t0: int, t1: int, limit: int) -> list[SpanView]:
        """The first `limit` spans of a lane that touch [t0, t1), by time."""
        found = self.index_of(lane)
        if found is None:
            return []
        index, own = found
        first, last = index.visible(own, t0, t1)
        return self._of(index, np.array([lane]), np.array([[first, min(last, first + limit)]]))

    def each(self, lanes: Sequence[int], t0: int, t1: int, limit: int) -> list[Spans]:
        """The spans of each lane that touch [t0, t1); None where they are more than `limit`."""
        listed: list[Spans] = [[] for _ in lanes]
        wanted = np.asarray(lanes, np.int64)
        for section in self._sections:
            own = wanted - section.first_lane
            rows = np.flatnonzero((own >= 0) & (own < len(section.index.offsets) - 1))
            if not len(rows):
                continue
            ranges = section.index.visible_in(own[rows], t0, t1)
            is_few = ranges[:, 1] - ranges[:, 0] <= limit
            for row in rows[~is_few].tolist():
                listed[row] = None
            rows, ranges = rows[is_few], ranges[is_few]
            spans = iter(self._of(section.index, wanted[rows], ranges))
            for row, count in zip(rows.tolist(), np.diff(ranges)[:, 0].tolist(), strict=True):
                listed[row] = [next(spans) for _ in range(count)]
        return listed

    def at(self, lane: int, index: SpanIndex, place: int) -> SpanView:
        """The span at a place of an index, which is on this lane."""
        return self._of(index, np.array([lane]), np.array([[place, place + 1]]))[0]

    def neighbour(self, lane: int, ts_ns: int, side: Side) -> SpanView | None:
        """The last span of a lane that begins before a time (left), or the first after (right)."""
        found = self.index_of(lane)
        if found is None:
            return None
        index, own = found
        first, last = int(index.offsets[own]), int(index.offsets[own + 1])
        until = ts_ns if side == "right" else ts_ns - 1
        place = int(index.began_by(np.array([own]), np.array([until]))[0]) - (side == "left")
        return self.at(lane, index, place) if first <= place < last else None

    def whole(self, span: SpanView) -> SpanView:
        """The span with its neighbours that are parts of it: they stand for the same row."""
        found = self.index_of(span.lane)
        if found is None:
            return span
        index, own = found
        first, last = int(index.offsets[own]), int(index.offsets[own + 1])
        at = int(index.began_by(np.array([own]), np.array([span.start_ns]))[0]) - 1 - first
        code = TABLES.index(span.ref[0])
        is_same = (index.ref[first:last] == span.ref[1]) & (index.table[first:last] == code)
        if not 0 <= at < len(is_same) or not is_same[at]:
            return span
        others = np.flatnonzero(~is_same)
        after = int(np.searchsorted(others, at))
        start = int(others[after - 1]) + 1 if after else 0
        end = int(others[after]) if after < len(others) else len(is_same)
        ends = index.ends(np.array([first + end - 1]))
        return span._replace(start_ns=int(index.starts[first + start]), end_ns=int(ends[0]))

    def _of(self, index: SpanIndex, lanes: Ints, ranges: Ints) -> list[SpanView]:
        """The spans at ranges of places [lanes, 2] of an index, lane after lane."""
        counts = np.diff(ranges)[:, 0]
        if not counts.sum():
            return []
        shift = ranges[:, 0] - (np.cumsum(counts) - counts)
        places = np.arange(counts.sum()) + np.repeat(shift, counts)
        lane, table, ref = np.repeat(lanes, counts), index.table[places], index.ref[places]
        state = index.state[places]
        labels, parts = self._labelled(lane, table, ref, state), self._parts(table, ref, state)
        refs = zip([TABLES[code] for code in table.tolist()], ref.tolist(), strict=True)
        columns = (lane, index.starts[places], index.ends(places), state)
        told = zip(*(column.tolist() for column in columns), labels, refs, parts, strict=True)
        return [*map(SpanView._make, told)]

    def _parts(self, table: Bytes, ref: Ints, state: Bytes) -> list[tuple[float, ...]]:
        """How the tokens of mixed steps are shared; of other spans nothing."""
        parts: list[tuple[float, ...]] = [()] * len(state)
        for code in np.unique(table[state == MIXED]).tolist():
            own = np.flatnonzero((table == code) & (state == MIXED))
            named = STEP_OF_BATCH if TABLES[code] == "batch_rows" else TABLES[code]
            for place, shares in zip(
                own.tolist(), self._labels.parts(named, ref[own]), strict=True
            ):
                parts[place] = shares
        return parts

    def _labelled(self, lane: Ints, table: Bytes, ref: Ints, state: Bytes) -> list[str]:
        naming, labels = self._naming[lane], np.empty(len(lane), object)
        for code in np.unique(table).tolist():
            for kind in np.unique(naming).tolist():
                own = np.flatnonzero((table == code) & (naming == kind))
                if len(own):
                    named = _named(TABLES[code], kind)
                    labels[own] = self._labels.of(named, ref[own], state[own].tolist())
        return list(labels)


def _named(table: str, kind: int) -> str:
    """What rows of a table stand for on a lane: of steps 1, of requests 2, of a buffer 3."""
    if kind == 1 and table == "batch_rows":
        return STEP_OF_BATCH
    if kind == 3 and table == "accesses":
        return CONTENTS
    return OF_REQUEST + table if kind == 2 and table in OWNER else table
