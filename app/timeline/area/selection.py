"""What is selected: a mark and its lanes, a finding, a span, the spans of a row of sums."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.analyzers.findings.finding import Finding
from stepscope.app.timeline.flags.flag_at import FlagAt
from stepscope.app.timeline.picture import SpanView

GROUPINGS = ("name", "state", "lane", "pivot")
"""What an area is summed by; a pivot is by lane and name."""

MOST_LETTERS = 1_000
"""Letters by which a name is known in an address: longer ones that begin alike are one there."""


@dataclass(frozen=True, slots=True)
class Pick:
    """The spans of a row of an area's sums: of the name, the state or the lane `text`."""

    by: str
    text: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What is selected, in the order in which it counts: a mark, a finding, a span, a point.

    `point` is the lane and the time of the cursor, where it was put into a lane. `lanes` are those
    of the mark, `pick` a row of its sums; `with_path` tells whether the path to the span is shown.
    `flags` are those that stand where the cursor is.
    """

    mark: tuple[int, int] | None = None
    finding: Finding | None = None
    span: SpanView | None = None
    section: str | None = None
    lanes: tuple[int, ...] = ()
    with_path: bool = False
    pick: Pick | None = None
    point: tuple[int, int] | None = None
    flags: tuple[FlagAt, ...] = ()
