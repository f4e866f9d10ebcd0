"""The timeline of a trace: its lanes, and what is on them in any window of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from copy import copy
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stepscope.app import palette
from stepscope.app.timeline.area.cut_spans import Area
from stepscope.app.timeline.area.span_names import SpanNames
from stepscope.app.timeline.area.sums import AreaSums, sums_of
from stepscope.app.timeline.find import Finder, Hit
from stepscope.app.timeline.flows.flow import Flows
from stepscope.app.timeline.flows.path import families
from stepscope.app.timeline.flows.span_numbers import SpanNumbers
from stepscope.app.timeline.flows.ties import Ties
from stepscope.app.timeline.lane_rows import Row, outline
from stepscope.app.timeline.lanes.buffers import BUFFERS
from stepscope.app.timeline.lanes.counters import Series
from stepscope.app.timeline.lanes.kept_layout import layout_of
from stepscope.app.timeline.lanes.kv_blocks import KV_BLOCKS
from stepscope.app.timeline.lanes.lane import Ints, Lane, Subject
from stepscope.app.timeline.lanes.slots import SLOTS
from stepscope.app.timeline.lanes.subjects import Places
from stepscope.app.timeline.lanes.tracks import COLLECTIVES, PYTHON, STREAMS
from stepscope.app.timeline.lanes.waiting_queue import WAITING_QUEUE
from stepscope.app.timeline.listed.by_lane import OF_REQUESTS, ListedSpans
from stepscope.app.timeline.listed.labels import OWNER
from stepscope.app.timeline.load import LoadOverTime, load_of
from stepscope.app.timeline.picture import Picture, Ref, Spans, SpanView
from stepscope.app.timeline.profile.colouring import Colours, recoloured
from stepscope.app.timeline.profile.gpu_load import BusyDevices
from stepscope.app.timeline.profile.top_names import TopName
from stepscope.app.timeline.span_index import Sum, shown_edges
from stepscope.app.units import amount
from stepscope.ingest.trace import Trace

if TYPE_CHECKING:
    from stepscope.analyzers.findings.finding import Finding

MOST_OPEN = 12
"""Lanes of slots, KV blocks or the waiting queue up to which these are not collapsed at first."""
MAX_LISTED = 64
"""Spans that a picture lists in a lane; a lane with more is shown by its pixels alone."""


class Timeline:
    """Lanes, and answers about any window of them; made by `Timeline.of(trace)`.

    `bounds` is [first, last) of all that is on it, at least 1 ns; (0, 1000) for an empty trace.
    """

    states: tuple[palette.State, ...] = palette.STATES

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._layout = layout = layout_of(trace)  # while it lives, its files stay
        self.bounds: tuple[int, int] = layout.bounds
        self.top_names: tuple[TopName, ...] = layout.top
        self.share_of = layout.share_of
        self.colours: Colours = "name" if layout.top else "state"
        self._called = layout.called
        self._first = self
        laid = layout.with_counters(trace)
        self.lanes: tuple[Lane, ...] = tuple(laid.lanes)
        self._names, self._sections, self._counters = laid.names, laid.sections, laid.counters

    @classmethod
    def of(cls, trace: Trace) -> Timeline:
        """Lay out the rows of a trace."""
        return cls(trace)

    def coloured(self, by: Colours) -> Timeline:
        """The same spans in colours by name or by state; itself where nothing goes by its name."""
        if by == self.colours or not self.has_names:
            return self
        return self._first if by == self._first.colours else self._first._recoloured

    @cached_property
    def has_names(self) -> bool:
        """Whether there are spans that can have a colour by their name."""
        return bool(self._first.top_names) or self._trace.has("core_spans")

    @cached_property
    def _recoloured(self) -> Timeline:
        other = copy(self)
        other.colours = "state" if self.colours == "name" else "name"
        sections, named = recoloured(self._trace, self._sections, self.colours)
        other._sections, other.top_names = sections, named.top
        other.share_of = named.share_of
        plain = {state: name for state, name in self._called.items() if state < palette.NAME}
        other._called = plain | {each.state: each.name for each in named.top}
        for made in ("flows", "kinds", "_listed"):
            other.__dict__.pop(made, None)
        return other

    @cached_property
    def outline(self) -> tuple[Row, ...]:
        """All rows that the lanes can stand in, in order."""
        return outline(self.lanes)

    @cached_property
    def collapsed_at_first(self) -> frozenset[str]:
        """The sections that are collapsed until they are asked for, where there are others.

        Buffers are open where their contents were overwritten: that is what one has to see.
        """
        num_lanes = Counter(lane.section for lane in self.lanes if lane.kind != "counter")
        many = {name for name in (SLOTS, WAITING_QUEUE, KV_BLOCKS) if num_lanes[name] > MOST_OPEN}
        sound = set() if palette.OVERWRITTEN in self.kinds_of(BUFFERS) else {BUFFERS}
        collapsed = frozenset({PYTHON, *sound, *many} & num_lanes.keys())
        return collapsed if num_lanes.keys() > collapsed else frozenset()

    @cached_property
    def kinds(self) -> frozenset[int]:
        """The states that any lane shows."""
        return frozenset[int]().union(*(self.kinds_of(each.name) for each in self._sections))

    def kinds_of(self, section: str) -> frozenset[int]:
        """The states that the lanes of a section show."""
        own = (each for each in self._sections if each.name == section)
        return frozenset(kind for each in own for kind in each.index.kinds.tolist())

    def has_moments(self, section: str) -> bool:
        """Whether any span of a section takes no time."""
        return any(each.index.has_moments for each in self._sections if each.name == section)

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
        picture = Picture(lanes, width, lambda: self.listed(lanes, t0, t1, MAX_LISTED))
        self.paint(picture, *shown_edges(t0, t1, width), hidden)
        return picture

    def paint(
        self, picture: Picture, edges: Ints, shown: Ints, hidden: Collection[int] = ()
    ) -> None:
        """Fill in a picture of pixels between rising `edges`, of which `shown` has one for each."""
        wanted = np.asarray(picture.lanes, np.int64)
        for section in self._sections:
            own = wanted - section.first_lane
            rows = np.flatnonzero((own >= 0) & (own < len(section.index.offsets) - 1))
            if len(rows):
                pixels = section.index.pixels(own[rows], edges, hidden)
                picture.state[rows] = pixels.state[:, shown]
                picture.density[rows] = pixels.density[:, shown]
                picture.count[rows] = pixels.count[:, shown]
                marks = section.index.marks(own[rows], edges, palette.MARKS, hidden)
                picture.mark[rows] = marks[:, shown]
        for row, lane in enumerate(picture.lanes):
            if lane in self._counters:
                series = self._counters[lane].series(edges)
                picture.density[row] = series.heights()[shown]
                picture.count[row] = np.isfinite(series.values)[shown]

    def spans(self, lane: int, t0: int, t1: int, limit: int) -> list[SpanView]:
        """The first `limit` spans of a lane that touch [t0, t1), by time."""
        return self._listed.first(lane, t0, t1, limit)

    def listed(self, lanes: Sequence[int], t0: int, t1: int, limit: int) -> list[Spans]:
        """The spans of each lane that touch [t0, t1); None where they are more than `limit`."""
        return self._listed.each(lanes, t0, t1, limit)

    def sums(self, lane: int, t0: int, t1: int) -> dict[int, Sum]:
        """What each state took of [t0, t1) in a lane; empty for a counter."""
        found = self._listed.index_of(lane)
        sums = {} if found is None else found[0].sums(found[1], t0, t1)
        if sums and self.lanes[lane].section == WAITING_QUEUE:  # whose shades are no states
            whole = [sum(part) for part in zip(*sums.values(), strict=True)]
            return {palette.WAITING: Sum(*whole)}
        return sums

    def series(self, lane: int, t0: int, t1: int, width: int) -> Series | None:
        """Values of a counter lane in a window; None on any other lane."""
        is_counter = lane in self._counters
        return self.values_at(lane, *shown_edges(t0, t1, width)) if is_counter else None

    def values_at(self, lane: int, edges: Ints, shown: Ints) -> Series | None:
        """Values of a counter lane at the ends of pixels; None on any other lane."""
        if lane not in self._counters:
            return None
        series = self._counters[lane].series(edges)
        return Series(series.values[shown], series.low, series.high, series.unit)

    def load(self, width: int, t0: int | None = None, t1: int | None = None) -> LoadOverTime:
        """The minimap: what kept the engine busy, by kind, over [t0, t1) or the whole trace."""
        first = self.bounds[0] if t0 is None else t0
        last = self.bounds[1] if t1 is None else t1
        return self.load_at(*shown_edges(first, last, width))

    def load_at(self, edges: Ints, shown: Ints) -> LoadOverTime:
        """The same between rising edges."""
        sections, counters = self._first._sections, [*self._counters.values()]
        return load_of(self._trace, sections, counters, self._devices, edges).widened(shown)

    # ── one span ─────────────────────────────────────────────────────────────────────────────

    def at(self, lane: int, ts_ns: int) -> SpanView | None:
        """The span (or the sample of a counter) that a lane shows at a time."""
        if lane in self._counters:
            return self._sample(lane, ts_ns)
        found = self.spans(lane, ts_ns, ts_ns + 1, 2)
        return next((span for span in found if span.end_ns > ts_ns), found[0] if found else None)

    def next_span(self, lane: int, ts_ns: int) -> SpanView | None:
        """The first span of a lane that begins after a time."""
        return self._listed.neighbour(lane, ts_ns, "right")

    def previous_span(self, lane: int, ts_ns: int) -> SpanView | None:
        """The last span of a lane that begins before a time."""
        return self._listed.neighbour(lane, ts_ns, "left")

    def whole(self, span: SpanView) -> SpanView:
        """The wait that a span is a part of, from its beginning to its end; any other span itself.

        A wait is cut where its reason changes.
        """
        can_be_cut = self.lanes[span.lane].section == "requests"
        is_wait = span.state in (*palette.WAITS, palette.IDLE)
        return self._listed.whole(span) if can_be_cut and is_wait else span

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

    def ranks_of_request(self, request: str) -> list[int]:
        """The ranks that have a lane of a request of this name."""
        return self._places.ranks_of(("request", request))

    def lane_of_core(self, rank: int | None, core: int) -> int | None:
        """The lane of a core, in the first rank that has one where no rank is given."""
        return self._places.lane(rank, ("core", core))

    def lane_of_call(self, rank: int, group: Subject) -> int | None:
        """The lane of the collective calls of a rank in a group, which is `subject_of_group`."""
        return self._places.lane(rank, group)

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

    def request_in(self, span: SpanView) -> tuple[int, str] | None:
        """The request that a span is about: its lane's, or who is in the slot or the queue."""
        who = self.request_of(span.lane)
        column = OWNER.get(span.ref[0])
        if who or column is None or self.lanes[span.lane].section not in OF_REQUESTS:
            return who
        row = self.row(span.ref)
        if row.get(column) is None or self.lane_of_request(row["rank"], row[column]) is None:
            return None
        return row["rank"], row[column]

    def find(self, text: str, limit: int = 50) -> list[Hit]:
        """Requests, steps, cores, tasks, buffers, spans that `text` names, the closest first."""
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
    def _listed(self) -> ListedSpans:
        return ListedSpans(self._trace, self.lanes, self._sections)

    def area(self, start_ns: int, end_ns: int, lanes: Sequence[int]) -> AreaSums:
        """What some lanes add up to over [start_ns, end_ns); counters are none of them."""
        spans = len(self.lanes) - len(self._counters)
        own = tuple(sorted({lane for lane in lanes if lane < spans}))
        return self._first._areas(Area(start_ns, end_ns, own))

    @cached_property
    def _areas(self) -> Callable[[Area], AreaSums]:
        heads = [family.start for family in self._families]

        def added_up(area: Area) -> AreaSums:
            return sums_of(area, self._sections, self._span_names, heads)

        return lru_cache(maxsize=4)(added_up)

    @cached_property
    def _span_names(self) -> SpanNames:
        return SpanNames(self._trace)

    def family(self, lane: int) -> tuple[int, ...]:
        """A lane and its sub-lanes; a counter alone."""
        return tuple(self._families[lane]) if lane < len(self._families) else (lane,)

    @cached_property
    def _families(self) -> tuple[range, ...]:
        return families([lane.depth for lane in self.lanes if lane.kind != "counter"])

    @cached_property
    def _ties(self) -> Ties:
        return Ties(self._trace, SpanNumbers(self._sections), self._places.lane)

    @cached_property
    def flows(self) -> Flows:
        """What led to what: arrows between spans, and the path to one."""
        numbers = SpanNumbers(self._sections)
        ties = self._first._ties

        def view(number: int) -> SpanView:
            spot = numbers.spot(number)
            return self._listed.at(spot.lane, spot.index, spot.place)

        return Flows(numbers, ties, self._families, view)

    def _sample(self, lane: int, ts_ns: int) -> SpanView | None:
        counter = self._counters[lane]
        place = counter.sample_at(ts_ns)
        if place is None:
            return None
        is_last = place + 1 == len(counter.ts_ns)
        end_ns = self.bounds[1] if is_last else int(counter.ts_ns[place + 1])
        label = amount(float(counter.values[place]), counter.unit)
        ref = (counter.table, int(counter.rows[place]))
        return SpanView(lane, int(counter.ts_ns[place]), end_ns, palette.COUNTER, label, ref)
