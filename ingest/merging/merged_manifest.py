"""What is said of profiles that were merged into a recording."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from stepscope.ingest.derive.launches import is_launch_note
from stepscope.ingest.manifest import MERGED, Manifest, ReadReport
from stepscope.ingest.trace import Trace

FROM_PROFILE = ("spans", "flows", "counters", "collectives")
"""Tables that a profile adds rows to."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a rank's profile: which recorded steps it covers, and how well they fit.

    `of_rank` is the recorded rank whose steps they are; `num_executed` are the kernels and copies
    of the profile, `num_assigned` those of which the step is known.
    """

    rank: int
    of_rank: int
    num_steps: int
    first_step: int
    last_step: int
    num_alone: int
    moved_ns: int
    median_ns: int
    most_ns: int
    num_executed: int
    num_assigned: int

    def said(self) -> str:
        """A sentence on it."""
        steps = f"steps {self.first_step} to {self.last_step}"
        alone = f", {self.num_alone:,} more were not recorded" if self.num_alone else ""
        num = f"{self.num_steps:,} {'step' if self.num_steps == 1 else 'steps'}"
        whose = f"profile of rank {self.rank}: its {num} are {steps}{alone}"
        return f"{whose}; {self._fit()}; {self._executed()}"

    def _fit(self) -> str:
        moved = (
            f" once its clock is moved by {self.moved_ns / 1e6:+.3f} ms" if self.moved_ns else ""
        )
        if not self.most_ns:
            return f"all lie within them{moved}"
        median, most = self.median_ns / 1e3, self.most_ns / 1e3
        return f"{median:,.1f} µs (median) and at most {most:,.1f} µs lie outside of them{moved}"

    def _executed(self) -> str:
        if not self.num_executed:
            return "no kernel is in it"
        return f"{self.num_assigned:,} of {self.num_executed:,} kernels and copies are of a step"


def merged_manifest(run: Trace, profile: Trace, merged: list[Merged]) -> Manifest:
    """What the trace says of itself: what the recording says, and how the profiles fit."""
    own, theirs = run.manifest, profile.manifest
    states = {
        name: theirs.tables.get(name, "complete") for name in FROM_PROFILE if profile.has(name)
    }
    ranks = sorted({*own.ranks, *theirs.ranks})
    # A profile is of a part of the run: that something is not in it says nothing of the rest.
    if any(each.num_steps < run.num_rows("steps") for each in merged):
        states = {
            name: "partial" if state == "complete" else state for name, state in states.items()
        }
    return replace(
        own,
        ranks=tuple(ranks),
        config={**own.config, MERGED: {str(each.rank): asdict(each) for each in merged}},
        tables={**own.tables, **states},
        report=_report(own.report or ReadReport(), theirs.report or ReadReport(), merged),
    )


def _report(own: ReadReport, theirs: ReadReport, merged: list[Merged]) -> ReadReport:
    inferred = {
        what: num for what, num in theirs.inferred.items() if not what.startswith("steps from")
    }
    return ReadReport(
        {**own.read, **theirs.read},
        {**own.skipped, **theirs.skipped},
        {**own.repaired, **theirs.repaired},
        {**own.inferred, **inferred},
        tuple(_notes(own, theirs, merged)),
    )


def _notes(own: ReadReport, theirs: ReadReport, merged: list[Merged]) -> Iterator[str]:
    yield from (each.said() for each in merged)
    yield from own.notes
    yield from (note for note in theirs.notes if not is_launch_note(note))
