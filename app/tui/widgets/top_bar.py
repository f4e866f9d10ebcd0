"""The line at the top: which trace, where in it, and how much is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from textual.reactive import reactive

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Severity
from stepscope.app.palette import NOT_APPLICABLE, SEVERITY_MARKS
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.widgets.text_bar import Bar, Piece
from stepscope.app.units import count
from stepscope.app.widths import fit_middle, width_of

PROGRAM = " stepscope"
ENDINGS = re.compile(r"(\.(json|trace|gz))+$")
LEAST_NAME = 8
"""Cells of a name that is cut; of fewer nobody could tell it."""


class TopBar(Bar):
    """Name and variant on the left; step, time and findings on the right, which never give way."""

    cuts_name = True
    """Whether a part of the name says which trace it is; of two names no part does."""
    trace_name: reactive[str] = reactive("")
    variant: reactive[str] = reactive("")
    place: reactive[str] = reactive("")
    result: reactive[CheckResult | None] = reactive(None)
    progress: reactive[str] = reactive("")

    def left(self) -> Sequence[Piece]:
        """The program, the trace, its variant; a long name is cut where there is no more room."""
        name, room = self.trace_name, self._room_for_name()
        if self.cuts_name and LEAST_NAME <= room < width_of(name):
            # Which format it is tells no file of a folder from another.
            name = fit_middle(ENDINGS.sub("", name), room)
        variant = [Piece(f" · {self.variant}", ink(MUTED, PANEL))] if self.variant else []
        return [
            Piece(PROGRAM, ink(ACCENT, PANEL, bold=True), "app.page('overview')"),
            Piece(f"  {name}", ink(TEXT, PANEL)),
            *variant,
        ]

    def _room_for_name(self) -> int:
        taken = sum(width_of(piece.text) for piece in self.right())
        return self.size.width - taken - width_of(PROGRAM) - 2

    def right(self) -> Sequence[Piece]:
        """Where we are, and the findings by severity; a click opens them."""
        return [Piece(f"  {self.place}  ", ink(TEXT, PANEL), "app.page('step')"), *self._verdict()]

    def _verdict(self) -> Sequence[Piece]:
        if self.result is None or self.progress:
            return [Piece(f" {self.progress} ", ink(MUTED, PANEL))] if self.progress else []
        found, blind = tally(self.result), []
        if self.result.coverage.verdict:
            # No count of errors is told where nothing looked for any; what was found is.
            found = {severity: number for severity, number in found.items() if number}
            said = f" {NOT_APPLICABLE} no rule could judge "
            blind = [Piece(said, ink(TEXT, PANEL), "app.page('findings')")]
        elif not any(found.values()):
            return [Piece(" ✔ nothing found ", ink(MUTED, PANEL), "app.page('findings')")]
        return blind + [
            Piece(
                f" {SEVERITY_MARKS[severity].glyph} {count(number)} ",
                ink(SEVERITY_MARKS[severity].colour if number else MUTED, PANEL, bold=bool(number)),
                "app.page('findings')",
            )
            for severity, number in found.items()
        ]


def tally(result: CheckResult) -> dict[Severity, int]:
    """How many findings there are of each severity, worst first."""
    return {
        severity: sum(each.count for each in result.findings if each.severity == severity)
        for severity in Severity
    }
