"""What a timeline draws, lane by lane, as tests read it."""

from __future__ import annotations

from stepscope.app.palette import STATES
from stepscope.app.timeline import SpanView, Timeline

Drawn = tuple[int, int, str, str]


def drawn(timeline: Timeline, section: str) -> dict[str, list[Drawn]]:
    """Per lane of a section: start, end, state and label of each span."""
    return {
        f"{lane.group} {lane.label}".strip() + "'" * lane.depth: [
            (span.start_ns, span.end_ns, STATES[span.state].name, span.label)
            for span in spans_of(timeline, lane.id)
        ]
        for lane in timeline.lanes
        if lane.section == section
    }


def spans_of(timeline: Timeline, lane: int) -> list[SpanView]:
    return timeline.spans(lane, timeline.bounds[0], timeline.bounds[1], 1000)
