"""The line at the top: which trace, where in it, and how much is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.reactive import reactive

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Severity
from stepscope.app.palette import NOT_APPLICABLE, SEVERITY_MARKS
from stepscope.app.tui.ink import ACCENT, MUTED, PANEL, TEXT, ink
from stepscope.app.tui.widgets.text_bar import Bar, Piece
from stepscope.app.units import count


class TopBar(Bar):
    """Name and variant on the left; step, time and findings on the right, which never give way."""

    trace_name: reactive[str] = reactive("")
    variant: reactive[str] = reactive("")
    place: reactive[str] = reactive("")
    result: reactive[CheckResult | None] = reactive(None)
    progress: reactive[str] = reactive("")

    def left(self) -> Sequence[Piece]:
        """The program, the trace, its variant."""
        variant = [Piece(f" · {self.variant}", ink(MUTED, PANEL))] if self.variant else []
        return [
            Piece(" stepscope", ink(ACCENT, PANEL, bold=True), "app.page('overview')"),
            Piece(f"  {self.trace_name}", ink(TEXT, PANEL)),
            *variant,
        ]

    def right(self) -> Sequence[Piece]:
        """Where we are, and the findings by severity; a click opens them."""
        return [Piece(f"  {self.place}  ", ink(TEXT, PANEL), "app.page('step')"), *self._verdict()]

    def _verdict(self) -> Sequence[Piece]:
        if self.result is None or self.progress:
            return [Piece(f" {self.progress} ", ink(MUTED, PANEL))] if self.progress else []
        found = tally(self.result)
        if self.result.coverage.verdict:
            said = f" {NOT_APPLICABLE} no rule could judge "
            return [Piece(said, ink(TEXT, PANEL), "app.page('findings')")]
        if not any(found.values()):
            return [Piece(" ✔ nothing found ", ink(MUTED, PANEL), "app.page('findings')")]
        return [
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
