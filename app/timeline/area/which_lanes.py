"""Which lanes of a marked range are summed."""

from __future__ import annotations

from stepscope.app.timeline.model import Timeline


def area_lanes(timeline: Timeline, lane: int | None, marked: tuple[int, ...]) -> tuple[int, ...]:
    """The lanes that were marked, else those of the section of `lane`."""
    if marked or lane is None:
        return marked
    section = timeline.lanes[lane].section
    return tuple(each.id for each in timeline.lanes if each.section == section)


def next_lanes(timeline: Timeline, lane: int | None, marked: tuple[int, ...]) -> tuple[int, ...]:
    """After the section's lanes that of the cursor alone, after that all of them, then again."""
    every = tuple(each.id for each in timeline.lanes if each.kind != "counter")
    own = () if lane is None else timeline.family(lane)
    if not marked:
        return own
    return every if marked == own and marked != every else ()
