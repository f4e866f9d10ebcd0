"""Which rows of a timeline are shown: pinned lanes on top, what is collapsed, states left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from stepscope.app.timeline.lane_rows import Row, arranged, keys_over
from stepscope.app.timeline.model import Timeline


@dataclass(slots=True)
class ShownRows:
    """The rows of a timeline for the lanes on top (`pins`), in their order, and what is hidden.

    `collapsed` are keys of sections and groups (`keys_over`), `hidden` the states whose spans are
    left out.
    """

    timeline: Timeline
    pins: list[int] = field(default_factory=list, kw_only=True)
    collapsed: set[str] = field(default_factory=set, kw_only=True)
    hidden: set[int] = field(default_factory=set, kw_only=True)
    _rows: list[Row] | None = field(init=False, default=None)

    @property
    def rows(self) -> list[Row]:
        """The rows that are shown: the same list until other lanes are pinned or collapsed."""
        if self._rows is None:
            lanes = self.timeline.lanes
            self._rows = arranged(self.timeline.outline, lanes, self.pins, self.collapsed)
        return self._rows

    def row_of(self, lane: int | None) -> int | None:
        """The row that shows a lane, a pinned one first."""
        return next(
            (y for y, row in enumerate(self.rows) if any(each.id == lane for each in row.lanes)),
            None,
        )

    def toggle_collapsed(self, key: str) -> None:
        """Collapse a section or a group, or expand it."""
        self.collapsed ^= {key}
        self._rows = None

    def toggle_state(self, state: int) -> None:
        """Hide the spans of a state, or show them again."""
        self.hidden ^= {state}

    def expand_to(self, lane: int) -> None:
        """Expand what hides a lane."""
        hiding = self.collapsed.intersection(keys_over(self.timeline.lanes[lane]))
        if hiding:
            self.collapsed -= hiding
            self._rows = None
