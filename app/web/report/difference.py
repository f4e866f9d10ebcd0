"""The part of a report that holds two traces against each other."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.analyzers.diff.compare import Difference, diff
from stepscope.app.paired.summary_deltas import summary_deltas
from stepscope.app.present.diff_knew import knowledge
from stepscope.app.present.diff_text import divergence_lines, outcome_lines, verdict_lines
from stepscope.app.web.loaded import LoadedTrace
from stepscope.app.web.report.markup import markup, tag, text

Pair = tuple[LoadedTrace, LoadedTrace]


@dataclass(frozen=True, slots=True)
class Compared:
    """Two traces and where they diverge."""

    both: Pair
    found: Difference

    @classmethod
    def of(cls, both: Pair) -> Compared:
        """Compare two traces."""
        return cls(both, diff(both[0].trace, both[1].trace))

    def lines(self) -> list[str]:
        """The same lines as `stepscope diff` prints."""
        a, b = self.both
        lines = list(verdict_lines(self.found))
        if divergence := self.found.divergence:
            known = (
                knowledge(a.trace, divergence, divergence.row_a),
                knowledge(self.found.pairing.b, divergence, divergence.row_b),
            )
            lines += divergence_lines(divergence, known, (a.trace.start_ns(), b.trace.start_ns()))
        return [*lines, "", *outcome_lines(self.found, (a.found, b.found))]

    def markup(self) -> str:
        """What is told of it, as it is printed, and the summaries of both against each other."""
        told = tag("pre", "\n".join(text(line) for line in self.lines()), "diff")
        a, b = self.both
        deltas = summary_deltas((a.trace, b.trace), (a.blamed, b.blamed), a.slo)
        return told + markup(deltas)

    def step_range(self, loaded: LoadedTrace) -> tuple[int, int] | None:
        """From when to when the first step that differs ran in one of the two."""
        divergence = self.found.divergence
        if divergence is None or divergence.rank != loaded.timeline.walked_rank:
            return None
        index = loaded.step_index(divergence.step)
        return None if index is None else loaded.step_range(index)
