"""Findings of two traces in one list, each at the time of A at which it lies, and who has it alone.

A finding is the same as another by its fingerprint, as a baseline knows it: requests of B are
called as those of A that `diff` pairs them with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace

from stepscope.analyzers.check.baseline import baseline_of, new_findings
from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.finding import Finding, by_severity_then_time
from stepscope.app.paired.time_map import TimeMap

Results = tuple[CheckResult, CheckResult]


@dataclass(frozen=True, slots=True)
class PairedFinding(Finding):
    """A finding on the time of A: `own` is it as its own trace has it, 0 is A's and 1 is B's side.

    `is_alone` says that the other trace has none like it, though its rule could judge that one.
    """

    side: int = 0
    own: Finding | None = None
    is_alone: bool = False


def found_in(
    results: Results, called_in_a: Mapping[str, str], on_a: TimeMap
) -> tuple[PairedFinding, ...]:
    """What was found in both, worst first."""
    ours, theirs = results[0], _called(results[1], called_in_a)
    alone = [
        {id(each) for each in new.findings}
        for new in (
            *new_findings([ours], baseline_of([theirs])),
            *new_findings([theirs], baseline_of([ours])),
        )
    ]
    found = [
        _paired(side, own, id(said) in alone[side], other, on_a)
        for side, (result, renamed, other) in enumerate(
            ((ours, ours, theirs), (results[1], theirs, ours))
        )
        for own, said in zip(result.findings, renamed.findings, strict=True)
    ]
    return tuple(sorted(found, key=by_severity_then_time))


def _called(result: CheckResult, names: Mapping[str, str]) -> CheckResult:
    """The same with requests called as in A."""
    return replace(
        result,
        findings=tuple(
            replace(each, request=names.get(each.request or "", each.request))
            for each in result.findings
        ),
    )


def _paired(
    side: int, own: Finding, is_new: bool, other: CheckResult, on_a: TimeMap
) -> PairedFinding:
    could_judge = own.code in other.counts
    who = f"{'only ' * (is_new and could_judge)}{'AB'[side]}"
    not_applicable = "" if could_judge else f" (not applicable in {'BA'[side]})"
    said = {each.name: getattr(own, each.name) for each in fields(Finding)}
    said |= {
        name: on_a.a_at(said[name])
        for name in ("ts_ns", "end_ns")
        if side and said[name] is not None
    }
    said["message"] = f"{who}{not_applicable}: {own.message}"
    return PairedFinding(**said, side=side, own=own, is_alone=is_new and could_judge)


def alone_in(found: tuple[PairedFinding, ...], side: int) -> Iterator[PairedFinding]:
    """What one side has and the other has not."""
    return (each for each in found if each.side == side and each.is_alone)
