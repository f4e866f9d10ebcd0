"""The rows that lanes stand in, in both fronts: pinned lanes, then every section under its header.

A group of lanes that is collapsed is a strip: one row that shows all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

from stepscope.app.timeline.lanes.lane import Lane

INLINE_GROUPS = ("core groups",)
"""Sections whose groups are named beside their lanes; elsewhere a group has a row of its own."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row: the header of a section or of a group in it, a lane, or a strip of several.

    `key` is what collapses or expands here. The row is hidden while a key that it is `under` is
    collapsed; a strip is also hidden while its own is not.
    """

    kind: Literal["section", "group", "strip", "lane"]
    section: str
    group: str = ""
    lanes: tuple[Lane, ...] = ()
    key: str = ""
    under: tuple[str, ...] = ()
    is_pinned: bool = False

    @property
    def lane(self) -> Lane | None:
        """The lane of the row, the first one of a strip; None for a header."""
        return self.lanes[0] if self.lanes else None

    def is_shown(self, collapsed: Collection[str]) -> bool:
        """Whether the row is there while these keys are collapsed."""
        if any(key in collapsed for key in self.under):
            return False
        return self.kind != "strip" or self.key in collapsed


def is_summary(lane: Lane) -> bool:
    """Whether a lane is a counter of a section that has spans."""
    return lane.kind == "counter" and lane.section != "counters"


def keys_over(lane: Lane) -> tuple[str, ...]:
    """What hides a lane while it is collapsed: its section, and its group if it has one.

    A counter of a section of spans says how that went as a whole: nothing hides it.
    """
    if is_summary(lane):
        return ()
    group = (f"{lane.section}/{lane.group}",) if lane.group else ()
    return (lane.section, *group)


def outline(lanes: Sequence[Lane]) -> tuple[Row, ...]:
    """All rows that there can be, in order; a section begins with its own counters."""
    sections: dict[str, list[Lane]] = {}
    for lane in lanes:
        sections.setdefault(lane.section, []).append(lane)
    return tuple(row for section, those in sections.items() for row in _section(section, those))


def _section(section: str, lanes: Sequence[Lane]) -> Iterator[Row]:
    yield Row("section", section, key=section)
    yield from (Row("lane", section, "", (lane,)) for lane in lanes if is_summary(lane))
    own = [lane for lane in lanes if not is_summary(lane)]
    for group, those in groupby(own, key=lambda lane: lane.group):
        yield from _group(section, group, tuple(those))


def _group(section: str, group: str, lanes: tuple[Lane, ...]) -> Iterator[Row]:
    over = keys_over(lanes[0])
    rows = [Row("lane", section, group, (lane,), under=over) for lane in lanes]
    if group:
        yield Row("strip", section, group, lanes, over[-1], under=(section,))
        if section in INLINE_GROUPS:
            rows[0] = replace(rows[0], key=over[-1])
        else:
            yield Row("group", section, group, key=over[-1], under=over)
    yield from rows


def arranged(
    rows: Sequence[Row], lanes: Sequence[Lane], pins: Sequence[int], collapsed: Collection[str]
) -> list[Row]:
    """The rows of an outline that are shown, under those of the pinned lanes."""
    pinned = [
        Row("lane", "pinned", lanes[pin].group, (lanes[pin],), is_pinned=True) for pin in pins
    ]
    header = [Row("section", "pinned")] if pins else []
    return [*header, *pinned, *(row for row in rows if row.is_shown(collapsed))]
