"""What is selected, in one sentence for those who hear the page."""

from __future__ import annotations

from stepscope.app.present.where import lane_name
from stepscope.app.printable import plain
from stepscope.app.timeline import Timeline
from stepscope.app.timeline.area.selection import Selection
from stepscope.app.timeline.section_states import state_of
from stepscope.app.units import duration, moment

LONGEST = 300
"""Letters that are read out."""


def said(timeline: Timeline, selection: Selection, lane: int | None) -> str:
    """The mark, the finding, the span or the lane that is selected, in the order of what counts."""
    if selection.mark is not None:
        first, last = selection.mark
        return f"marked {duration(last - first)} from {_at(first)}"
    if selection.finding is not None:
        found = selection.finding
        return plain(f"{found.severity} {found.code} {found.name}: {found.message}")[:LONGEST]
    if lane is None or not timeline.lanes:
        return "nothing is selected"
    of = f"lane {lane_name(timeline.lanes[lane])}"
    if (span := selection.span) is None:
        return plain(of)[:LONGEST]
    state = state_of(span, timeline)
    lasts = duration(span.end_ns - span.start_ns)
    label = span.label if span.label == state else f"{span.label}, {state}"
    since = _at(span.start_ns - timeline.bounds[0])
    return plain(f"{of}: {label}, for {lasts} from {since}")[:LONGEST]


def _at(t_ns: int) -> str:
    return moment(max(0, t_ns), 1_000)
