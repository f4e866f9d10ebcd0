"""All lanes of a trace with their spans, and what is said of these: made of its rows once."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.app.timeline.lanes.bounds import bounds_of
from stepscope.app.timeline.lanes.counters import counters
from stepscope.app.timeline.lanes.kv_blocks import pool_counters
from stepscope.app.timeline.lanes.laid_lanes import LaidLanes
from stepscope.app.timeline.lanes.lane import Lane, LaneName
from stepscope.app.timeline.lanes.sections import end_with_margin, laid_out
from stepscope.app.timeline.lanes.tracks import lay_out_tracks, placed_spans
from stepscope.app.timeline.profile.top_names import TopName
from stepscope.app.timeline.span_index import Section
from stepscope.app.timeline.spans.piles import Piles
from stepscope.ingest.trace import Trace


@dataclass(frozen=True)
class Layout:
    """The lanes but for counters, what each is called, and the sections with their spans.

    `bounds` is [first, last) of all that the trace shows; `top`, `share_of` and `called` are as
    those of `Tracks`.
    """

    bounds: tuple[int, int]
    top: tuple[TopName, ...]
    share_of: str
    called: dict[int, str]
    lanes: tuple[Lane, ...]
    names: tuple[LaneName, ...]
    sections: tuple[Section, ...]

    def with_counters(self, trace: Trace) -> LaidLanes:
        """The lanes, and below them one for each counter."""
        found = (*pool_counters(trace, self.sections, self.names), *counters(trace))
        laid = LaidLanes()
        laid.lanes, laid.names = [*self.lanes], [*self.names]
        laid.sections = [*self.sections]
        laid.add_counters(found)
        return laid


def lay_out(trace: Trace, piles: Piles | None = None) -> Layout:
    """Lay out the rows of a trace; the columns of its spans are kept in `piles`, else in memory."""
    spans = placed_spans(trace)
    recorded = bounds_of(trace, {"spans": spans.lazy()})
    bounds = recorded[0], end_with_margin(trace, recorded)
    tracks = lay_out_tracks(trace, spans, recorded[1])
    del spans
    laid = LaidLanes(piles)
    for name, found in laid_out(trace, recorded, bounds[1], tracks):
        laid.add_section(name, found)
    return Layout(
        bounds, tracks.top, tracks.share_of, tracks.called, tuple(laid.lanes), tuple(laid.names),
        tuple(laid.sections),
    )  # fmt: skip
