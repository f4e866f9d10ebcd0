"""What the rules found while a recording went on: when each finding came, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from stepscope.analyzers.findings.finding import Finding

MOST = 5_000
"""Findings that are kept; further ones are counted."""


class Standing(StrEnum):
    """Whether a finding still holds."""

    FOUND = "found"
    OLDER = "its rows are left out by now"
    WITHDRAWN = "no longer found"


@dataclass(frozen=True, slots=True)
class Came:
    """A finding, the step at which it came, and how it stands."""

    finding: Finding
    at_step: int | None
    standing: Standing = Standing.FOUND


class FoundSoFar:
    """All findings of a recording, in the order in which they came; none is lost without a word.

    `num_untold` counts those for which there was no more room.
    """

    def __init__(self, most: int = MOST) -> None:
        self.came: list[Came] = []
        self.num_untold = 0
        self._most = most

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Those that were not withdrawn, in the order in which they came."""
        return tuple(each.finding for each in self.came if each.standing is not Standing.WITHDRAWN)

    def take(
        self, found: Sequence[Finding], at_step: int | None, whole_since_ns: int | None,
        judged: frozenset[str],
    ) -> bool:  # fmt: skip
        """Take what a check found, by rules of the codes `judged`, in all rows since a time.

        A finding that goes on is the same one, with its latest numbers. One that is no longer found
        is withdrawn where the rows that it was found in were there, and stands where they were not.
        Tells whether anything changed.
        """
        before = [*self.came], self.num_untold
        left = self._go_on([*found], _exactly)
        left = self._go_on(left, _about, but=found)
        seen = {_exactly(each) for each in found}
        for at, each in enumerate(self.came):
            if _exactly(each.finding) not in seen and each.standing is Standing.FOUND:
                self.came[at] = replace(each, standing=_lost(each, whole_since_ns, judged))
        room = max(self._most - len(self.came), 0)
        self.came += [Came(each, at_step) for each in left[:room]]
        self.num_untold += len(left[room:])
        return (self.came, self.num_untold) != before

    def _go_on(
        self, found: list[Finding], key: Callable[[Finding], Hashable],
        but: Sequence[Finding] = (),
    ) -> list[Finding]:  # fmt: skip
        """Let findings that are known go on, as `key` knows them; give those that are not."""
        taken = {_exactly(each) for each in but}
        known: dict[Hashable, list[int]] = {}
        for at, each in enumerate(self.came):
            if _exactly(each.finding) not in taken and each.standing is not Standing.OLDER:
                known.setdefault(key(each.finding), []).append(at)
        exact = {_exactly(each.finding) for each in self.came}
        new = []
        for now in found:
            places = known.get(key(now))
            if places:
                at = places.pop(0)
                self.came[at] = Came(now, self.came[at].at_step)
            elif key is not _exactly or _exactly(now) not in exact:
                new.append(now)
        return new


def _lost(came: Came, whole_since_ns: int | None, judged: frozenset[str]) -> Standing:
    """How a finding stands that is no longer found."""
    ts_ns = came.finding.ts_ns
    is_cut = whole_since_ns is not None and (ts_ns is None or ts_ns < whole_since_ns)
    is_there = not is_cut and came.finding.code in judged
    return Standing.WITHDRAWN if is_there else Standing.OLDER


def _about(finding: Finding) -> Hashable:
    return (
        finding.code, finding.rank, finding.request, finding.task, finding.core, finding.group,
    )  # fmt: skip


def _exactly(finding: Finding) -> Hashable:
    return *_place(finding), _about(finding)


def _place(finding: Finding) -> tuple[int | None, int | None]:
    return finding.step, finding.ts_ns
