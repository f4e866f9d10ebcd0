"""The timeline of two traces: lanes of A and B in turn, on the time of A.

What is asked of a lane is asked of the trace that it is of, at the times that lie there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.paired.alignments import Alignment
from stepscope.app.paired.flows_of_both import Ends, JoinedFlows
from stepscope.app.paired.found_in_both import PairedFinding
from stepscope.app.paired.lane_pairs import Joined
from stepscope.app.paired.time_map import Ruler
from stepscope.app.timeline import Hit, Lane, LoadOverTime, Picture, Series, SpanView, Sum, Timeline
from stepscope.app.timeline.area.cut_spans import Area
from stepscope.app.timeline.area.span_names import AreaNames
from stepscope.app.timeline.area.sums import AreaSums
from stepscope.app.timeline.flows.flow import Flows
from stepscope.app.timeline.lanes.lane import Ints, Subject
from stepscope.app.timeline.model import MAX_LISTED
from stepscope.app.timeline.picture import Ref, Spans
from stepscope.app.timeline.profile.colouring import Colours
from stepscope.app.timeline.profile.top_names import TopName
from stepscope.app.timeline.span_index import shown_edges

B_ROWS = 2**48
"""Rows of B are numbered from here on, so that a span says of which trace it is."""
Both = tuple[Timeline, Timeline]


class JoinedTimeline(Timeline):
    """Answers as a timeline does, for two of them."""

    def __init__(self, both: Both, joined: Joined, alignment: Alignment) -> None:
        self.both, self.joined, self.alignment = both, joined, alignment
        self.colours: Colours = "state"
        self.top_names: tuple[TopName, ...] = ()
        self.share_of = ""
        self.lanes: tuple[Lane, ...] = joined.lanes
        self._place = {own: lane for lane, own in enumerate(joined.whose)}
        theirs = (self.on_a(1, each) for each in both[1].bounds)
        ends = [*both[0].bounds, *theirs]
        self.bounds: tuple[int, int] = (min(ends), max(ends))

    # ── whose ────────────────────────────────────────────────────────────────────────────────

    def on_a(self, side: int, ts_ns: int) -> int:
        """Where a time of a side lies on the time of A."""
        return self.alignment.map.a_at(ts_ns) if side else ts_ns

    def own_time(self, side: int, ts_ns: int) -> int:
        """The time of a side on a time of A."""
        return self.alignment.map.b_at(ts_ns) if side else ts_ns

    def own_window(self, side: int, t0: int, t1: int) -> tuple[int, int]:
        """A window of A's time on a side, 1 ns at least."""
        first = self.own_time(side, t0)
        return first, max(self.own_time(side, t1), first + 1)

    def ruler_of_b(self, t0: int, t1: int, most: int) -> Ruler:
        """Round times of B in a window of A's time, at most so many, by B's own clock."""
        return self.alignment.map.ruler(self.both[1].bounds[0], *self.own_window(1, t0, t1), most)

    def own_span(self, span: SpanView) -> SpanView:
        """The span as its own trace has it, at its own times."""
        side, lane = self.joined.whose[span.lane]
        table, row = span.ref
        ref = (table, row - B_ROWS * side)
        at = self.own_time(side, span.start_ns)
        own = (each for each in self.both[side].spans(lane, at, at + 1, 8) if each.ref == ref)
        return next(own, span._replace(lane=lane, ref=ref))

    def _on_a(self, side: int, span: SpanView | None, lane: int) -> SpanView | None:
        return None if span is None else self._moved(side, [span], lane)[0]

    def _moved(self, side: int, spans: Sequence[SpanView], lane: int) -> list[SpanView]:
        ref = B_ROWS * side
        if not spans:
            return []
        ends = np.array([[each.start_ns, each.end_ns] for each in spans], np.int64)
        moved = self.alignment.map.to_a(ends) if side else ends
        return [
            each._replace(
                lane=lane, start_ns=start, end_ns=end, ref=(each.ref[0], each.ref[1] + ref)
            )
            for each, (start, end) in zip(spans, moved.tolist(), strict=True)
        ]

    # ── colours ──────────────────────────────────────────────────────────────────────────────

    def coloured(self, by: Colours) -> Timeline:
        """By state alone: a colour that stood for one name in A would stand for another in B."""
        del by
        return self

    @property
    def has_names(self) -> bool:
        """No: see `coloured`."""
        return False

    @property
    def collapsed_at_first(self) -> frozenset[str]:
        """What either has collapsed."""
        return self.both[0].collapsed_at_first | self.both[1].collapsed_at_first

    @property
    def kinds(self) -> frozenset[int]:
        """The states that any lane shows."""
        return self.both[0].kinds | self.both[1].kinds

    def kinds_of(self, section: str) -> frozenset[int]:
        """The states that the lanes of a section show."""
        return self.both[0].kinds_of(section) | self.both[1].kinds_of(section)

    def has_moments(self, section: str) -> bool:
        """Whether any span of a section takes no time, in either."""
        return any(each.has_moments(section) for each in self.both)

    def called(self, state: int) -> str:
        """What a state stands for, in both where that differs."""
        return " or ".join(dict.fromkeys(each.called(state) for each in self.both))

    @property
    def walked_rank(self) -> int | None:
        """The rank of A whose steps are walked."""
        return self.both[0].walked_rank

    # ── windows ──────────────────────────────────────────────────────────────────────────────

    def query(
        self, t0: int, t1: int, width: int, lanes: Sequence[int], hidden: Collection[int] = ()
    ) -> Picture:
        """Paint a window: of each pixel of A's time, what B has at the times that lie there."""
        picture = Picture(lanes, width, lambda: self.listed(lanes, t0, t1, MAX_LISTED))
        self.paint(picture, *shown_edges(t0, t1, width), hidden)
        return picture

    def _rising(self, side: int, t0: int, t1: int, width: int) -> tuple[Ints, Ints]:
        """Edges of pixels on a side, and the pixel of each that is shown: those of 0 ns repeat."""
        return self._own_edges(side, *shown_edges(t0, t1, width))

    def _own_edges(self, side: int, edges: Ints, shown: Ints) -> tuple[Ints, Ints]:
        """Rising edges of A's time as those of a side, and which of its pixels each is."""
        if not side:
            return edges, shown
        risen, place = np.unique(self.alignment.map.to_b(edges), return_inverse=True)
        if len(risen) < 2:
            return np.array([risen[0], risen[0] + 1], np.int64), np.zeros(len(shown), np.int64)
        return risen, np.minimum(place[:-1], len(risen) - 2)[shown]

    def _side(self, lane: int) -> int:
        return self.joined.whose[lane][0]

    def spans(self, lane: int, t0: int, t1: int, limit: int) -> list[SpanView]:
        """The first spans of a lane that touch a window, by time."""
        side, own = self.joined.whose[lane]
        return self._moved(
            side, self.both[side].spans(own, *self.own_window(side, t0, t1), limit), lane
        )

    def listed(self, lanes: Sequence[int], t0: int, t1: int, limit: int) -> list[Spans]:
        """The spans of each lane that touch a window; None where they are more than `limit`."""
        listed: list[Spans] = [None for _ in lanes]
        for side in (0, 1):
            rows = [at for at, lane in enumerate(lanes) if self.joined.whose[lane][0] == side]
            own = [self.joined.whose[lanes[at]][1] for at in rows]
            theirs = self.both[side].listed(own, *self.own_window(side, t0, t1), limit)
            for at, spans in zip(rows, theirs, strict=True):
                listed[at] = None if spans is None else self._moved(side, spans, lanes[at])
        return listed

    def sums(self, lane: int, t0: int, t1: int) -> dict[int, Sum]:
        """What each state took of a window, in the time of its own trace."""
        side, own = self.joined.whose[lane]
        return self.both[side].sums(own, *self.own_window(side, t0, t1))

    def series(self, lane: int, t0: int, t1: int, width: int) -> Series | None:
        """Values of a counter lane in a window."""
        side, own = self.joined.whose[lane]
        return self.both[side].values_at(own, *self._rising(side, t0, t1, width))

    def load(self, width: int, t0: int | None = None, t1: int | None = None) -> LoadOverTime:
        """The load of A over a window, or over all that is on the timeline."""
        return self.load_of(0, width, t0, t1)

    def load_of(
        self, side: int, width: int, t0: int | None = None, t1: int | None = None
    ) -> LoadOverTime:
        """The load of a side on A's time."""
        first = self.bounds[0] if t0 is None else t0
        last = self.bounds[1] if t1 is None else t1
        return self.both[side].load_at(*self._rising(side, first, last, width))

    def paint(
        self, picture: Picture, edges: Ints, shown: Ints, hidden: Collection[int] = ()
    ) -> None:
        """Fill in a picture of pixels between rising edges of A's time."""
        for side in (0, 1):
            rows = [at for at, lane in enumerate(picture.lanes) if self._side(lane) == side]
            own = [self.joined.whose[picture.lanes[at]][1] for at in rows]
            part = Picture(own, len(shown), list)
            if own:
                self.both[side].paint(part, *self._own_edges(side, edges, shown), hidden)
                picture.state[rows], picture.density[rows] = part.state, part.density
                picture.count[rows], picture.mark[rows] = part.count, part.mark

    def values_at(self, lane: int, edges: Ints, shown: Ints) -> Series | None:
        """Values of a counter lane at the ends of pixels of A's time."""
        side, own = self.joined.whose[lane]
        return self.both[side].values_at(own, *self._own_edges(side, edges, shown))

    def load_at(self, edges: Ints, shown: Ints) -> LoadOverTime:
        """The load of A between rising edges."""
        return self.both[0].load_at(edges, shown)

    def area(self, start_ns: int, end_ns: int, lanes: Sequence[int]) -> AreaSums:
        """What some lanes of both add up to over [start_ns, end_ns), in A's time."""
        names, parts = AreaNames(), []
        here = tuple(sorted({lane for lane in lanes if 0 <= lane < len(self.lanes)}))
        for side in (0, 1):
            own = [self.joined.whose[lane][1] for lane in here if self._side(lane) == side]
            sums = self.both[side].area(*self.own_window(side, start_ns, end_ns), own)
            parts.append(self._area_spans(side, sums, names))
        area = Area(start_ns, end_ns, here)
        heads = [self.family(lane)[0] for lane in range(len(self.lanes))]
        return AreaSums(area, pl.concat(parts).sort("lane", "start"), names, heads)

    def _area_spans(self, side: int, sums: AreaSums, names: AreaNames) -> pl.DataFrame:
        """The spans of an area of a side on the lanes and the time of both."""
        spans = sums.spans
        starts = spans["start"].to_numpy()
        ends = starts + spans["ns"].to_numpy()
        if side and len(spans):
            starts, ends = self.alignment.map.to_a(starts), self.alignment.map.to_a(ends)
        lanes = [self._place[side, lane] for lane in spans["lane"]]
        numbers = {
            column: texts.numbers(own.texts)
            for column, texts, own in (
                ("name", names.names, sums.names.names),
                ("state", names.states, sums.names.states),
            )
        }
        return spans.with_columns(
            pl.Series("lane", lanes, pl.Int32),
            pl.Series("start", starts, pl.Int64),
            pl.Series("ns", ends - starts, pl.Int64),
            *(
                pl.Series(column, number[spans[column].to_numpy()], pl.Int32)
                for column, number in numbers.items()
            ),
        )

    # ── one span ─────────────────────────────────────────────────────────────────────────────

    def at(self, lane: int, ts_ns: int) -> SpanView | None:
        """The span that a lane shows at a time."""
        side, own = self.joined.whose[lane]
        return self._on_a(side, self.both[side].at(own, self.own_time(side, ts_ns)), lane)

    def next_span(self, lane: int, ts_ns: int) -> SpanView | None:
        """The first span of a lane that begins after a time."""
        side, own = self.joined.whose[lane]
        found = self.both[side].next_span(own, self.own_time(side, ts_ns))
        while found is not None and self.on_a(side, found.start_ns) <= ts_ns:
            found = self.both[side].next_span(own, found.start_ns)
        return self._on_a(side, found, lane)

    def previous_span(self, lane: int, ts_ns: int) -> SpanView | None:
        """The last span of a lane that begins before a time."""
        side, own = self.joined.whose[lane]
        found = self.both[side].previous_span(own, self.own_time(side, ts_ns) + side)
        while found is not None and self.on_a(side, found.start_ns) >= ts_ns:
            found = self.both[side].previous_span(own, found.start_ns)
        return self._on_a(side, found, lane)

    def row(self, ref: Ref) -> dict[str, Any]:
        """The whole row that a span stands for."""
        side = int(ref[1] >= B_ROWS)
        return self.both[side].row((ref[0], ref[1] - B_ROWS * side))

    # ── finding ──────────────────────────────────────────────────────────────────────────────

    def lane_of(self, finding: Finding) -> int | None:
        """The lane that a finding is about, of the trace that has it."""
        if not isinstance(finding, PairedFinding) or finding.own is None:
            return self.place(0, self.both[0].lane_of(finding))
        return self.place(finding.side, self.both[finding.side].lane_of(finding.own))

    def place(self, side: int, lane: int | None) -> int | None:
        """The lane here of a lane of a side."""
        return None if lane is None else self._place[side, lane]

    def lane_of_request(self, rank: int, request: str) -> int | None:
        """The lane of a request of A, else of B."""
        found = (
            self.place(side, self.both[side].lane_of_request(rank, request)) for side in (0, 1)
        )
        return next((lane for lane in found if lane is not None), None)

    def ranks_of_request(self, request: str) -> list[int]:
        """The ranks that have a lane of a request of this name, in either."""
        return sorted({rank for own in self.both for rank in own.ranks_of_request(request)})

    def lane_of_core(self, rank: int | None, core: int) -> int | None:
        """The lane of a core of A, else of B."""
        found = (self.place(side, self.both[side].lane_of_core(rank, core)) for side in (0, 1))
        return next((lane for lane in found if lane is not None), None)

    def lane_of_call(self, rank: int, group: Subject) -> int | None:
        """The lane of the collective calls of a rank in a group, in the first trace that has it."""
        found = (self.place(side, self.both[side].lane_of_call(rank, group)) for side in (0, 1))
        return next((lane for lane in found if lane is not None), None)

    def core_of(self, lane: int) -> tuple[int, int] | None:
        """The rank and the number of the core that a lane is of."""
        side, own = self.joined.whose[lane]
        return self.both[side].core_of(own)

    def group_of(self, lane: int) -> list[Lane]:
        """The lanes of the core group that a lane is of, in both."""
        side, own = self.joined.whose[lane]
        if not self.both[side].group_of(own):
            return []
        shown = self.lanes[lane]
        key = shown.section, shown.rank, shown.group
        return [each for each in self.lanes if (each.section, each.rank, each.group) == key]

    def request_of(self, lane: int) -> tuple[int, str] | None:
        """The request that a lane is of, by its rank and its id in its own trace."""
        side, own = self.joined.whose[lane]
        return self.both[side].request_of(own)

    def find(self, text: str, limit: int = 50) -> list[Hit]:
        """What `text` names in A, and then in B."""
        return [
            hit for side in (0, 1) for hit in self._hits(side, self.both[side].find(text, limit))
        ]

    def _hits(self, side: int, hits: Iterable[Hit]) -> Iterable[Hit]:
        for hit in hits:
            ends = self.on_a(side, hit.ts_ns), self.on_a(side, hit.end_ns)
            lane = self.place(side, hit.lane)
            label = f"{'AB'[side]} {hit.label}"
            yield replace(hit, label=label, lane=lane, ts_ns=ends[0], end_ns=ends[1])

    def sublane_of(self, lane: int | None, ref: Ref, ts_ns: int) -> int | None:
        """The sub-lane on which the span of a row begins."""
        if lane is None:
            return None
        side, own = self.joined.whose[lane]
        row = (ref[0], ref[1] - B_ROWS * side)
        return self.place(side, self.both[side].sublane_of(own, row, self.own_time(side, ts_ns)))

    def family(self, lane: int) -> tuple[int, ...]:
        """A lane and its sub-lanes."""
        side, own = self.joined.whose[lane]
        return tuple(self._place[side, each] for each in self.both[side].family(own))

    @property
    def flows(self) -> Flows:
        """What led to what, within each trace."""

        def own(span: SpanView) -> tuple[int, SpanView]:
            return self.joined.whose[span.lane][0], self.own_span(span)

        def here(side: int, span: SpanView) -> SpanView:
            return self._moved(side, [span], self._place[side, span.lane])[0]

        return JoinedFlows([each.flows for each in self.both], Ends(own, here))
