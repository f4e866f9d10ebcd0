"""What is looked at, carried over to a trace that was read anew, by names and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.live.follower import Status
from stepscope.app.timeline import Composition, Lane, Timeline, Viewport
from stepscope.app.timeline.navigator import Navigator
from stepscope.ingest.trace import Trace

LaneKey = tuple[str, int, str, str, int, int]
NEWEST_NS = 5_000_000_000
"""So much time is in view where the newest step is followed from the start."""


def lane_keys(lanes: Iterable[Lane]) -> list[LaneKey]:
    """What tells each lane from the others, whatever its number is."""
    seen: Counter[tuple[str, int, str, str, int]] = Counter()
    keys = []
    for lane in lanes:
        named = lane.section, lane.rank, lane.group, lane.label, lane.depth
        seen[named] += 1
        keys.append((*named, seen[named]))
    return keys


def timeline_since(trace: Trace, status: Status | None) -> Timeline:
    """Lay a trace out over all the time since its recording began, left out or not."""
    timeline = Timeline.of(trace)
    if status is not None and status.first_ns is not None:
        first, last = timeline.bounds
        timeline.bounds = (min(first, status.first_ns), last)
    return timeline


def carried(
    before: Navigator, timeline: Timeline, composition: Composition,
    findings: Sequence[Finding] | None, *, is_newest: bool,
) -> Navigator:  # fmt: skip
    """Look at another timeline where one looked at the one before; `is_newest` keeps to its end.

    A lane that is no longer there is let go, with what was selected in it.
    """
    places = {key: at for at, key in enumerate(lane_keys(timeline.lanes))}
    old = lane_keys(before.timeline.lanes)

    def moved(lane: int | None) -> int | None:
        return None if lane is None else places.get(old[lane])

    def all_moved(lanes: Iterable[int]) -> list[int]:
        return [new for lane in lanes if (new := moved(lane)) is not None]

    timeline = timeline.coloured(before.timeline.colours)
    view = Navigator(
        timeline, findings, before.without_findings, composition=composition,
        lane=moved(before.lane),
        cursor_ns=before.cursor_ns,
        mark_from=before.mark_from,
        mark=before.mark,
        marked_lanes=tuple(sorted(all_moved(before.marked_lanes))),
        pick=before.pick,
        shows_path=before.shows_path,
        pins=all_moved(before.pins),
        collapsed=set(before.collapsed),
        hidden=set(before.hidden),
        is_placed=before.is_placed,
        hits_ns=before.hits_ns,
    )  # fmt: skip
    first, last = timeline.bounds
    view.cursor_ns = min(max(before.cursor_ns, first), last - 1)
    view.finding = _same(before, findings)
    if before.span is not None and (lane := moved(before.span.lane)) is not None:
        view.span = timeline.at(lane, before.span.start_ns)
    view.look_at(newest(before.viewport, timeline) if is_newest else before.viewport)
    if is_newest and view.span is None:
        view.cursor_ns = timeline.bounds[1] - 1
    return view


def newest(viewport: Viewport, timeline: Timeline) -> Viewport:
    """The last of a timeline, as wide as the view is."""
    last = timeline.bounds[1]
    return Viewport(last - viewport.span_ns, last)


def first_view(timeline: Timeline) -> Viewport:
    """What is looked at first of a recording in progress: its last seconds."""
    first, last = timeline.bounds
    return Viewport(max(first, last - NEWEST_NS), last)


def _same(before: Navigator, findings: Sequence[Finding] | None) -> int | None:
    """The place of the finding that was selected."""
    if before.finding is None or not before.findings or not findings:
        return None
    own = before.findings[before.finding]
    about = (own.code, own.rank, own.request, own.task, own.core, own.group, own.ts_ns)
    return next(
        (
            at
            for at, each in enumerate(findings)
            if (each.code, each.rank, each.request, each.task, each.core, each.group, each.ts_ns)
            == about
        ),
        None,
    )
