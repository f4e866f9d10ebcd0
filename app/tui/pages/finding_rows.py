"""Findings as rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.app.palette import SEVERITY_MARKS
from stepscope.app.present.where import place, when
from stepscope.app.timeline.navigator import Navigator
from stepscope.app.tui.ink import BACKGROUND, MUTED, ink
from stepscope.app.tui.widgets.table import Cell, Column
from stepscope.app.widths import width_of

LEAST_TIME = 8
"""Cells of a moment of few digits."""


class FindingRows:
    """The rows of a table of findings, worst first."""

    def __init__(self, view: Navigator) -> None:
        self.nothing = view.without_findings
        self._findings = view.findings or ()
        self._timeline = view.timeline
        self._places = [place(found, view.timeline) for found in self._findings]
        times = [each.ts_ns for each in self._findings if each.ts_ns is not None]
        latest = max(times, default=view.timeline.bounds[0])
        self.columns: tuple[Column, ...] = (
            Column("", 1),
            Column("code", 6),
            Column("rule", 26, from_width=130),
            Column(
                "where", 16, from_width=60, grows_to=max(map(width_of, self._places), default=0)
            ),
            Column("what"),
            Column("×", 5, to_right=True, from_width=120),
            # The latest takes the most cells.
            Column(
                "time",
                max(LEAST_TIME, width_of(when(latest, view.timeline))),
                to_right=True,
                from_width=70,
            ),
        )

    def __len__(self) -> int:
        return len(self._findings)

    def cells(self, index: int) -> Sequence[Cell]:
        """One finding: mark, code, rule, where, what, how often, when."""
        found = self._findings[index]
        mark = SEVERITY_MARKS[found.severity]
        style, quiet = ink(mark.colour, BACKGROUND, bold=True), ink(MUTED, BACKGROUND)
        return (
            (mark.glyph, style),
            (found.code, style),
            (found.name, None),
            (self._places[index], quiet),
            (found.message, None),
            (f"{found.count:,}" if found.count > 1 else "", quiet),
            (when(found.ts_ns, self._timeline), quiet),
        )
