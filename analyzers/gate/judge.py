"""Judges conditions on the runs of two sides: one run each, or several, as of several seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from stepscope.analyzers.check.run import CheckResult
from stepscope.analyzers.findings.wording import duration, times
from stepscope.analyzers.gate.chance import chance_of_counts, chance_of_ranks, least_chance
from stepscope.analyzers.gate.conditions import DIVERGENCE, Condition

CHANCE = 0.05
"""A difference that is likelier than this where nothing changed does not fail a build."""
CHANCE_OF_FINDINGS = 0.01
"""The same of a rule that finds more, of which each build asks dozens."""
LOUD = ("error", "warning")


@dataclass(frozen=True)
class Run:
    """What one run came to: `outcomes.totals`, and of each rule that could judge how often it found
    something that is an error or a warning; `first` is what it found first, in words.
    """

    name: str
    totals: dict[str, Any]
    loud: dict[str, int]
    first: dict[str, str]


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a condition is met, and so fails the build, and what was seen, in words.

    `failed` is None where the traces do not tell: that fails, too, as nobody knows.
    """

    condition: Condition
    failed: bool | None
    said: str

    @property
    def fails(self) -> bool:
        """Whether it fails a build."""
        return self.failed is not False


def run_of(name: str, came: dict[str, Any], checked: CheckResult | None) -> Run:
    """Sum up a run of these totals; without rules where no condition asks for them."""
    loud: Counter[str] = Counter(dict.fromkeys(checked.counts, 0) if checked else {})
    first: dict[str, str] = {}
    for finding in checked.findings if checked else ():
        if finding.severity in LOUD:
            loud[finding.code] += finding.count
            at = "" if finding.step is None else f"step {finding.step:,}: "
            first.setdefault(finding.code, f"{at}{finding.message}")
    return Run(name, came, dict(loud), first)


def judge(
    condition: Condition, a: Sequence[Run], b: Sequence[Run], diverged: str | None = None
) -> Judged:
    """Judge a condition; `diverged` says where the only two runs do, "" where they do not, and is
    None where nobody can say.
    """
    if condition.total is not None:
        return _total(condition, condition.total, a, b)
    if condition.text == DIVERGENCE:
        if diverged is None:
            why = "they have no rows in common" if len(a) == len(b) == 1 else "there are several"
            return Judged(condition, None, f"they cannot be compared step by step: {why}")
        return Judged(condition, bool(diverged), diverged or "they are the same in every step")
    new = new_findings(a, b)
    return Judged(condition, bool(new), "; ".join(new.values()) or "no rule finds more in B")


def new_findings(a: Sequence[Run], b: Sequence[Run]) -> dict[str, str]:
    """What finds more in the runs of B, for each step, than in those of A: why, by rule."""
    return dict(_new_findings(a, b))


def _total(condition: Condition, name: str, a: Sequence[Run], b: Sequence[Run]) -> Judged:
    for side, runs in (("A", a), ("B", b)):
        if any(run.totals.get(name) is None for run in runs):
            return Judged(condition, None, f"not recorded in {side}")
    ours, theirs = ([float(run.totals[name]) for run in runs] for runs in (a, b))
    was, now = median(ours), median(theirs)
    said = [_changed(name, was, now)]
    is_beyond = condition.is_beyond(was, now)
    if len(a) > 1 or len(b) > 1:
        said[0] = f"medians of {len(a)} and {len(b)} runs: {said[0]}"
        if least_chance(len(a), len(b)) > CHANCE:
            said.append("these are too few runs to tell it from chance")
        elif is_beyond:
            signed = [[value * condition.sign for value in side] for side in (ours, theirs)]
            chance = chance_of_ranks(*signed)
            is_beyond = chance <= CHANCE
            said.append(f"by chance in {chance:.1%} of such runs")
    return Judged(condition, is_beyond, ", ".join(said))


def _changed(name: str, was: float, now: float) -> str:
    said = duration if name.endswith("_ns") else "{:,.6g}".format
    if was == now:
        return f"{said(was)} in both"
    by = f"{(now - was) / abs(was):+.2%}" if was else "from nothing"
    return f"{said(was)} became {said(now)}, {by}"


def _new_findings(a: Sequence[Run], b: Sequence[Run]) -> Iterator[tuple[str, str]]:
    steps = [sum(run.totals["steps"] or 0 for run in runs) for runs in (a, b)]
    for code in sorted({code for run in b for code, found in run.loud.items() if found}):
        of_a = [run.loud[code] for run in a if code in run.loud]
        was, now = sum(of_a), sum(run.loud.get(code, 0) for run in b)
        first = next(run.first[code] for run in b if code in run.first)
        if not of_a:
            yield code, f"{code} {times(now, 'time')}, which A does not tell of: {first}"
        elif not was:
            yield code, f"{code} {times(now, 'time')}, never in A: {first}"
        elif (chance := chance_of_counts(was, now, *steps)) <= CHANCE_OF_FINDINGS:
            said = (
                f"{code} {times(now, 'time')} in {steps[1]:,} steps, {was:,} in {steps[0]:,} of A, "
                f"by chance in {chance:.1%} of such runs: {first}"
            )
            yield code, said
