"""The rows of the lanes view: pinned lanes on top, then every section under its header."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from stepscope.app.timeline.lanes.lane import Lane

# Sections whose groups are named beside their lanes; elsewhere a group has a line of its own.
INLINE_GROUPS = ("core groups",)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the lanes view: a lane, or the header of a section or of a group in it."""

    section: str
    lane: Lane | None = None
    group: str = ""
    is_pinned: bool = False


def arranged(lanes: Sequence[Lane], pins: Sequence[int], folded: Collection[str]) -> list[Row]:
    """The rows in order; the lanes of folded sections are left out, their headers are not."""
    by_id = {lane.id: lane for lane in lanes}
    pinned = [Row("pinned", by_id[pin], is_pinned=True) for pin in pins]
    return [*([Row("pinned")] if pins else []), *pinned, *_sections(lanes, folded)]


def _sections(lanes: Sequence[Lane], folded: Collection[str]) -> Iterator[Row]:
    section, group = "", ""
    for lane in lanes:
        if lane.section != section:
            section, group = lane.section, ""
            yield Row(section)
        if section in folded:
            continue
        if lane.group not in ("", group) and section not in INLINE_GROUPS:
            yield Row(section, group=lane.group)
        group = lane.group
        yield Row(section, lane)
