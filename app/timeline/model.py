"""The timeline of a trace: its lanes, and what is on them in any window of time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stepscope.app import palette
from stepscope.app.timeline.find import Finder, Hit
from stepscope.app.timeline.lane_rows import Row, outline
from stepscope.app.timeline.lanes.bounds import bounds_of
from stepscope.app.timeline.lanes.counters import Counter, Series, counters
from stepscope.app.timeline.lanes.labels import STEP_OF_BATCH, Labels
from stepscope.app.timeline.lanes.lane import TABLES, Ints, Lane, LaneName, LaneSpans
from stepscope.app.timeline.lanes.sections import laid_out
from stepscope.app.timeline.lanes.subjects import Places
from stepscope.app.timeline.lanes.tracks import COLLECTIVES, PYTHON, STREAMS, lay_out_tracks
from stepscope.app.timeline.load import LoadOverTime, load_of
from stepscope.app.timeline.picture import Picture, Ref, Spans, SpanView
from stepscope.app.timeline.profile.gpu_load import BusyDevices
from stepscope.app.timeline.profile.top_names import TopName
from stepscope.app.timeline.span_index import Section, SpanIndex, Sum, in_sublanes, shown_edges
from stepscope.ingest.trace import Trace

if TYPE_CHECKING:
    from stepscope.analyzers.findings.finding import Finding

MAX_LISTED = 64
"""Spans that a picture lists in a lane; a lane with more is shown by its pixels alone."""
Side = Literal["left", "right"]


class Timeline:
    """Lanes, and answers about any window of them; made by `Timeline.of(trace)`.

    `bounds` is [first, last) of all that is on it, at least 1 ns; (0, 1000) for an empty trace.
    """

    states: tuple[palette.State, ...] = palette.STATES

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.bounds: tuple[int, int] = bounds_of(trace)
        self.lanes: tuple[Lane, ...] = ()
        self._names: list[LaneName] = []
        self._sections: list[Section] = []
        tracks = lay_out_tracks(trace, self.bounds[1])
        self.top_names: tuple[TopName, ...] = tracks.top
        self._called = tracks.called
        for name, found in laid_out(trace, self.bounds[1], tracks):
            self._add_section(name, found)
        self._counters: dict[int, Counter] = {}
        self._add_counters(counters(trace))

    @classmethod
    def of(cls, trace: Trace) -> Timeline:
        """Lay out the rows of a trace."""
        return cls(trace)

    @cached_property
    def outline(self) -> tuple[Row, ...]:
        """All rows that the lanes can stand in, in order."""
        return outline(self.lanes)

    @cached_property
    def collapsed_at_first(self) -> frozenset[str]:
        """The sections that are collapsed until they are asked for, where there are others."""
        sections = {lane.section for lane in self.lanes}
        return frozenset({PYTHON}) if sections > {PYTHON} else frozenset()

    @cached_property
    def kinds(self) -> frozenset[int]:
        """The states that any lane shows."""
        return frozenset[int]().union(*(self.kinds_of(each.name) for each in self._sections))

    def kinds_of(self, section: str) -> frozenset[int]:
        """The states that the lanes of a section show."""
        own = (each for each in self._sections if each.name == section)
        return frozenset(kind for each in own for kind in each.index.kinds.tolist())

    def called(self, state: int) -> str:
        """What a state stands for in this trace: its name, that of spans, or their categories."""
        return self._called.get(state, palette.STATES[state].name)

    @cached_property
    def walked_rank(self) -> int | None:
        """The rank whose steps are walked: the lowest that has any."""
        return min((lane.rank for lane in self.lanes if lane.section == "steps"), default=None)

    # ── windows ──────────────────────────────────────────────────────────────────────────────

    def query(
        self, t0: int, t1: int, width: int, lanes: Sequence[int], hidden: Collection[int] = ()
    ) -> Picture:
        """Paint the window [t0, t1) of some lanes, `width` pixels wide; needs t0 < t1, width > 0.

        Spans of a `hidden` state are left out of state and density.
        """
        picture = Picture(lanes, width, lambda lane: self._listed(lane, t0, t1))
        edges, shown = shown_edges(t0, t1, width)
        wanted = np.asarray(picture.lanes, np.int64)
        for section in self._sections:
            own = wanted - section.first_lane
            rows = np.flatnonzero((own >= 0) & (own < len(section.index.offsets) - 1))
            if len(rows):
                pixels = section.index.pixels(own[rows], edges, hidden)
                picture.state[rows] = pixels.state[:, shown]
                picture.density[rows] = pixels.density[:, shown]
                picture.count[rows] = pixels.count[:, shown]
        for row, lane in enumerate(picture.lanes):
            if lane in self._counters:
                series = self._counters[lane].series(edges)
                picture.density[row] = series.heights()[shown]
                picture.count[row] = np.isfinite(series.values)[shown]
        return picture

    def spans(self, lane: int, t0: int, t1: int, limit: int) -> list[SpanView]:
        """The first `limit` spans of a lane that touch [t0, t1), by time."""
        found = self._section_of(lane)
        if found is None:
            return []
        index, own = found
        first, last = index.visible(own, t0, t1)
        return self._views(lane, index, range(first, min(last, first + limit)))

    def sums(self, lane: int, t0: int, t1: int) -> dict[int, Sum]:
        """What each state took of [t0, t1) in a lane; empty for a counter."""
        found = self._section_of(lane)
        return {} if found is None else found[0].sums(found[1], t0, t1)

    def series(self, lane: int, t0: int, t1: int, width: int) -> Series | None:
        """Values of a counter lane in a window; None on any other lane."""
        if lane not in self._counters:
            return None
        edges, shown = shown_edges(t0, t1, width)
        series = self._counters[lane].series(edges)
        return Series(series.values[shown], series.low, series.high, series.unit)

    def load(self, width: int, t0: int | None = None, t1: int | None = None) -> LoadOverTime:
        """The minimap: what kept the engine busy, by kind, over [t0, t1) or the whole trace."""
        first = self.bounds[0] if t0 is None else t0
        last = self.bounds[1] if t1 is None else t1
        edges, shown = shown_edges(first, last, width)
        return load_of(self._trace, self._sections, self._devices, edges).widened(shown)

    # ── one span ─────────────────────────────────────────────────────────────────────────────

    def at(self, lane: int, ts_ns: int) -> SpanView | None:
        """The span (or the sample of a counter) that a lane shows at a time."""
        if lane in self._counters:
            return self._sample(lane, ts_ns)
        found = self.spans(lane, ts_ns, ts_ns + 1, 2)
        return next((span for span in found if span.end_ns > ts_ns), found[0] if found else None)

    def next_span(self, lane: int, ts_ns: int) -> SpanView | None:
        """The first span of a lane that begins after a time."""
        return self._neighbour(lane, ts_ns, "right", 0)

    def previous_span(self, lane: int, ts_ns: int) -> SpanView | None:
        """The last span of a lane that begins before a time."""
        return self._neighbour(lane, ts_ns, "left", -1)

    def row(self, ref: Ref) -> dict[str, Any]:
        """The whole row that a span stands for; its text is as it was recorded."""
        table, number = ref
        rows = self._trace.table(table).slice(number, 1).collect()
        return rows.row(0, named=True) if len(rows) else {}

    # ── finding ──────────────────────────────────────────────────────────────────────────────

    def lane_of(self, finding: Finding) -> int | None:
        """The lane that a finding is about: its core, group or request, else its rank's steps."""
        return self._places.of_finding(finding)

    def lane_of_request(self, rank: int, request: str) -> int | None:
        """The lane of a request; None where it was never in a batch."""
        return self._places.lane(rank, ("request", request))

    def core_of(self, lane: int) -> tuple[int, int] | None:
        """The rank and the number of the core that a lane is of; None of one that never ran."""
        name = self._names[lane]
        numbers = (subject for kind, subject in name.about if kind == "core")
        return next(((name.rank, int(each)) for each in numbers if each is not None), None)

    def group_of(self, lane: int) -> list[Lane]:
        """The lanes of the core group that a lane is of; none where it is of no group."""
        own = self.lanes[lane]
        if own.section != "core groups":
            return []
        return [
            each
            for each in self.lanes
            if (each.section, each.rank, each.group) == (own.section, own.rank, own.group)
            and not each.depth
        ]

    def request_of(self, lane: int) -> tuple[int, str] | None:
        """The request that a lane is of, by its rank and its id as it was recorded."""
        name = self._names[lane]
        about = (subject for kind, subject in name.about if kind == "request")
        return next(((name.rank, str(each)) for each in about), None)

    def find(self, text: str, limit: int = 50) -> list[Hit]:
        """Requests, steps, cores, groups, tasks and spans that `text` names, the closest first."""
        return Finder(self._trace, self, self._places).find(text, limit)

    def sublane_of(self, lane: int | None, ref: Ref, ts_ns: int) -> int | None:
        """The sub-lane, from `lane` down, on which the span of a row begins at a time."""
        if lane is None:
            return None
        below = range(lane, lane + 1)
        while below.stop < len(self.lanes) and self.lanes[below.stop].depth:
            below = range(lane, below.stop + 1)
        beginning = (
            (each, span) for each in below for span in self.spans(each, ts_ns, ts_ns + 1, 2)
        )
        return next((each for each, span in beginning if span.ref == ref), lane)

    @cached_property
    def _devices(self) -> BusyDevices:
        has_any = any(each.name in (STREAMS, COLLECTIVES) for each in self._sections)
        return BusyDevices.of(self._trace) if has_any else BusyDevices.none()

    @cached_property
    def _places(self) -> Places:
        return Places(self._trace, zip(self.lanes, self._names, strict=True))

    @cached_property
    def _labels(self) -> Labels:
        return Labels(self._trace)

    # ── building ─────────────────────────────────────────────────────────────────────────────

    def _add_section(self, section: str, found: LaneSpans) -> None:
        if not found.names:
            return
        spans, num_sublanes = in_sublanes(found.spans, len(found.names))
        first_lane = len(self.lanes)
        kind = "steps" if section == "steps" else "spans"
        self._add_lanes(section, kind, found.names, num_sublanes)
        index = SpanIndex(spans, int(num_sublanes.sum()))
        self._sections.append(Section(section, first_lane, index))

    def _add_counters(self, found: tuple[Counter, ...]) -> None:
        first_lane = len(self.lanes)
        names = tuple(counter.name for counter in found)
        self._add_lanes("counters", "counter", names, np.ones(len(names), np.int64))
        self._counters = {first_lane + place: counter for place, counter in enumerate(found)}

    def _add_lanes(
        self, section: str, kind: str, names: tuple[LaneName, ...], num_sublanes: Ints
    ) -> None:
        named = [
            (name, depth)
            for name, count in zip(names, num_sublanes.tolist(), strict=True)
            for depth in range(count)
        ]
        lane = len(self.lanes)
        self.lanes += tuple(
            Lane(lane + place, section, name.group, name.label, kind, name.rank, depth)
            for place, (name, depth) in enumerate(named)
        )
        self._names += [name for name, _ in named]

    # ── looking up ───────────────────────────────────────────────────────────────────────────

    def _section_of(self, lane: int) -> tuple[SpanIndex, int] | None:
        for section in self._sections:
            own = lane - section.first_lane
            if 0 <= own < len(section.index.offsets) - 1:
                return section.index, own
        return None

    def _listed(self, lane: int, t0: int, t1: int) -> Spans:
        spans = self.spans(lane, t0, t1, MAX_LISTED + 1)
        return spans if len(spans) <= MAX_LISTED else None

    def _neighbour(self, lane: int, ts_ns: int, side: Side, shift: int) -> SpanView | None:
        found = self._section_of(lane)
        if found is None:
            return None
        index, own = found
        first, last = int(index.offsets[own]), int(index.offsets[own + 1])
        place = int(np.searchsorted(index.start[first:last], ts_ns, side)) + shift
        if not 0 <= place < last - first:
            return None
        return self._views(lane, index, range(first + place, first + place + 1))[0]

    def _named_by(self, lane: int, table: str) -> str:
        is_batch = table == "batch_rows" and self.lanes[lane].section == "steps"
        return STEP_OF_BATCH if is_batch else table

    def _views(self, lane: int, index: SpanIndex, places: range) -> list[SpanView]:
        window = slice(places.start, places.stop)
        tables, rows = index.table[window].tolist(), index.ref[window].tolist()
        states = index.state[window].tolist()
        labels = [""] * len(rows)
        for code in set(tables):
            own = [place for place, table in enumerate(tables) if table == code]
            named = self._named_by(lane, TABLES[code])
            names = self._labels.of(named, [rows[p] for p in own], [states[p] for p in own])
            for place, name in zip(own, names, strict=True):
                labels[place] = name
        starts, ends = index.start[window].tolist(), index.end[window].tolist()
        return [
            SpanView(lane, start, end, state, label, (TABLES[table], row))
            for start, end, state, label, table, row in zip(
                starts, ends, states, labels, tables, rows, strict=True
            )
        ]

    def _sample(self, lane: int, ts_ns: int) -> SpanView | None:
        counter = self._counters[lane]
        place = counter.sample_at(ts_ns)
        if place is None:
            return None
        is_last = place + 1 == len(counter.ts_ns)
        end_ns = self.bounds[1] if is_last else int(counter.ts_ns[place + 1])
        label = f"{counter.values[place]:,.6g} {counter.unit}".strip()
        ref = (counter.table, int(counter.rows[place]))
        return SpanView(lane, int(counter.ts_ns[place]), end_ns, palette.COUNTER, label, ref)
