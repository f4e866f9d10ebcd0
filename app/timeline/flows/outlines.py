"""What is outlined on the lanes beside the selected span: both fronts draw the same list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stepscope.app.timeline.area.selection import Pick, Selection
from stepscope.app.timeline.model import Timeline

MOST_TIED = 200
MOST_PICKED = 2_000
Why = Literal["preceding", "following", "path", "gap", "picked"]


@dataclass(frozen=True, slots=True)
class Outline:
    """An interval of a lane, and why it stands out."""

    lane: int
    start_ns: int
    end_ns: int
    why: Why


def outlines(selection: Selection, timeline: Timeline) -> list[Outline]:
    """Where arrows lead from and to, the path in order of time, the spans of the row picked."""
    found: list[Outline] = []
    if selection.span is not None:
        found += _tied(selection, timeline)
        found += _path(selection, timeline)
    if selection.mark and selection.pick:
        found += _picked(selection.mark, selection.lanes, selection.pick, timeline)
    return found


def _tied(selection: Selection, timeline: Timeline) -> Iterator[Outline]:
    assert selection.span is not None
    flows = timeline.flows
    for tied in flows.preceding(selection.span, MOST_TIED):
        yield Outline(tied.span.lane, tied.span.start_ns, tied.span.end_ns, "preceding")
    for tied in flows.following(selection.span, MOST_TIED):
        yield Outline(tied.span.lane, tied.span.start_ns, tied.span.end_ns, "following")


def _path(selection: Selection, timeline: Timeline) -> Iterator[Outline]:
    assert selection.span is not None
    path = timeline.flows.path_to(selection.span) if selection.with_path else None
    for part in path.parts if path else ():
        why: Why = "gap" if part.is_gap else "path"
        yield Outline(part.lane, part.start_ns, part.end_ns, why)


def _picked(
    mark: tuple[int, int], lanes: tuple[int, ...], pick: Pick, timeline: Timeline
) -> Iterator[Outline]:
    spans = timeline.area(*mark, lanes).picked(pick.by, pick.text).head(MOST_PICKED)
    for lane, start, ns in spans.select("lane", "start", "ns").iter_rows():
        yield Outline(lane, start, start + ns, "picked")
